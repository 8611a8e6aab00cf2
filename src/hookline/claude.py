"""The name that `hookline.hosts.claude_code` had in 0.1: programs written for it keep working."""

from hookline.hosts.claude_code import *  # noqa: F403
from hookline.hosts.claude_code import __all__ as _names

__all__ = list(_names)
