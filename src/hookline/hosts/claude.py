"""Claude Code: the words that the others borrowed, and more events than any of them."""

from hookline.core.hooks.condition import CLAUDE_TOOLS
from hookline.core.wire.claude import reply_object
from hookline.events import CATALOG
from hookline.hosts.host import read_row

CLAUDE = read_row(
    "claude", events={name: name for name in CATALOG}, other_tools=frozenset(CLAUDE_TOOLS), body=reply_object
)
