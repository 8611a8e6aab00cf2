"""`python -m tools.reference`: write the reference pages."""

import sys

from tools.reference import write

sys.stdout.writelines(f"docs/reference/{name}\n" for name in write())
