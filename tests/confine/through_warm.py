"""`hookline confine` by way of a crew that was forked ahead, with the same flags; as `launch.py`, without `site`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType

package = ModuleType("hookline")
package.__path__ = [str(Path(__file__).parents[2] / "src" / "hookline")]
sys.modules["hookline"] = package

from hookline.confine.main import parse  # noqa: E402
from hookline.confine.warm import WarmStarter  # noqa: E402

if __name__ == "__main__":
    policy, command = parse(sys.argv[1:])
    starter = WarmStarter()
    files = {number: number for number in (0, 1, 2)}
    code = starter.start(policy, command, cwd=str(Path.cwd()), env=os.environ, files=files).exit_code()
    starter.close()
    sys.exit(137 if code is None else code)
