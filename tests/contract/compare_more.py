#!/usr/bin/env python3
"""As compare.py, on the cases in `more/`: our own, each run twice on the real CLI with the same outcome.

usage: compare_more.py "COMMAND" [--only PREFIX] [--jobs N] [--json OUT] [-v]
"""
import os

import compare

if __name__ == '__main__':
    compare.HERE = os.path.join(compare.HERE, 'more')
    compare.main()
