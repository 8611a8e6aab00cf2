"""The package's description on an index: README, its relative links made absolute where the project's address is known.

`HOOKLINE_URL=https://… python -m build` names it, once; without it links stay as they are, and none is guessed.
"""

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(\]\()(?![a-z][a-z+.-]*:|#)([^)\s]+)(\))")


def with_absolute_links(readme: str, url: str) -> str:
    """README with links that lead somewhere from any page."""
    return LINK.sub(rf"\g<1>{url.rstrip('/')}/\g<2>\g<3>", readme) if url else readme


class ReadmeHook(MetadataHookInterface):
    """Gives the build its `readme` and, where the address is known, its `urls`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Called by hatchling."""
        url = os.environ.get("HOOKLINE_URL", "")
        text = with_absolute_links((Path(self.root) / "README.md").read_text(), url)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        if url:
            metadata["urls"] = {"Homepage": url}
