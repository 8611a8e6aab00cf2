"""A hook as a script: the event is on stdin as JSON; exit code 2 denies, and stderr says why."""

import json
import sys
from pathlib import Path

event = json.load(sys.stdin)
path = Path(event["tool_input"]["file_path"])
if "generated" in path.parts:
    print(f"{path} is generated: change its source and run `make`", file=sys.stderr)
    sys.exit(2)
