"""Start `hookline confine` without the rest of Hookline: `python -I -S launch.py FLAGS… -- COMMAND…`.

Run as a file, so that neither `site` nor the package's own `__init__` has to be read first: half of the start.
"""

import os
import sys

_package = type(sys)("hookline")
_package.__path__ = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
sys.modules["hookline"] = _package

if sys.argv[1:2] == ["--serve"]:  # by `WarmStarter`, with a socket
    from hookline.sandbox.zygote import serve

    serve(int(sys.argv[2]))

from hookline.sandbox.main import main  # noqa: E402

_code = main(sys.argv[1:])
sys.stdout.flush()
os._exit(_code)  # taking the interpreter apart costs milliseconds
