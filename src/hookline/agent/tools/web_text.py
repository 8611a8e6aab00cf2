"""HTML as text that a model can read: headings, paragraphs, lists, links and code stay recognisable."""

import re
import time
from html.parser import HTMLParser
from urllib.parse import urljoin

__all__ = ["html_text"]

UNSEEN = frozenset({"script", "style", "noscript", "template", "svg", "iframe", "head"})
BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "dd", "div", "dl", "dt", "fieldset", "figure", "footer",
    "form", "header", "hr", "main", "nav", "ol", "p", "section", "table", "tbody", "thead", "tr", "ul",
})  # fmt: skip
HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
#: what stands for the beginning of an element, and for its end
OPENING = {**dict.fromkeys(BLOCKS, "\n\n"), **{tag: f"\n\n{marks}" for tag, marks in HEADINGS.items()},
           "pre": "\n\n```\n", "br": "\n", "li": "\n- ", "td": " | ", "th": " | "}  # fmt: skip
CLOSING = {**dict.fromkeys((*BLOCKS, *HEADINGS), "\n\n"), "pre": "\n```\n\n"}
#: characters that the parser is given at a time, and seconds that a whole page may take
PIECE, LONGEST_READING = 1 << 14, 5.0
SPACES = re.compile(r"[ \t\r\n\f\v]+")
GAPS = re.compile(r"\n[ \n]*\n\s*")


def html_text(page: str, base: str = "") -> str:
    """What a reader of the page sees, in Markdown's spelling; links are absolute with `base`.

    A page made to keep a parser busy is read as far as it goes in a few seconds: tags that never end are looked through
    again with every piece.
    """
    reader = _PageReader(base)
    deadline = time.monotonic() + LONGEST_READING
    for at in range(0, len(page), PIECE):
        reader.feed(page[at : at + PIECE])
        if time.monotonic() > deadline:
            break
    if len(reader.rawdata) <= PIECE:
        reader.close()
    return reader.text()


class _PageReader(HTMLParser):
    """Collects what is shown, piece by piece."""

    def __init__(self, base: str) -> None:
        super().__init__(convert_charrefs=True)
        self._base = base
        self._pieces: list[str] = []
        self._unseen: list[str] = []
        self._pre = 0
        self._links: list[tuple[str, int]] = []

    def text(self) -> str:
        return GAPS.sub("\n\n", "".join(self._pieces)).strip()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in UNSEEN:
            self._unseen.append(tag)
        if self._unseen:
            return
        self._pre += tag == "pre"
        self._pieces.append("`" if tag == "code" and not self._pre else OPENING.get(tag, ""))
        given = dict(attrs)
        if tag == "img" and given.get("alt"):
            self._pieces.append(f"[image: {given['alt']}]")
        elif tag == "a":
            self._links = [(given.get("href") or "", len(self._pieces))]  # one within another is none

    def handle_endtag(self, tag: str) -> None:
        if tag in self._unseen:
            while self._unseen.pop() != tag:
                pass
        elif not self._unseen and (tag != "pre" or self._pre):
            self._pieces.append("`" if tag == "code" and not self._pre else CLOSING.get(tag, ""))
            self._pre -= tag == "pre"
            if tag == "a" and self._links:
                self._end_link(*self._links.pop())

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self._pieces.append(data if self._pre else SPACES.sub(" ", data))

    def _end_link(self, href: str, since: int) -> None:
        words = "".join(self._pieces[since:]).strip()
        if not href or href.startswith(("#", "javascript:", "data:")) or not words or "\n" in words:
            return
        try:
            target = urljoin(self._base, href)
        except ValueError:
            return
        self._pieces[since:] = [f"[{words}]({target})"]
