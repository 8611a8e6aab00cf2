"""Bytes → lines, in bounded memory. Pure."""

from __future__ import annotations

from io import BytesIO

from hookline.errors import BadLine

LINE_LIMIT = 256 * 1024 * 1024


class LineSplitter:
    """Whole lines out of chunks of any size; a line over the limit is reported once and skipped to its end."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._skipping = False

    def push(self, chunk: bytes) -> list[bytes | BadLine]:
        whole = BytesIO(chunk).readlines()  # looks for the ends of lines in words, where `split` goes byte by byte
        rest = whole.pop() if whole and not chunk.endswith(b"\n") else b""
        lines: list[bytes | BadLine] = [line[:-1] for line in whole]
        if len(chunk) > self._limit:
            lines = [line if len(line) <= self._limit else self._too_long(line) for line in lines]  # type: ignore[arg-type]
        if lines and (self._parts or self._skipping):
            self._finish(lines)
        if rest:
            lines += self._begin(rest)
        return lines

    def end(self) -> bytes:
        """What was left without a newline."""
        left, self._parts, self._size = b"".join(self._parts), [], 0
        return left

    def _finish(self, lines: list[bytes | BadLine]) -> None:
        """The first of these lines ends the one that earlier chunks began."""
        parts, skipped = self._parts, self._skipping
        size, self._parts, self._size, self._skipping = self._size, [], 0, False
        if skipped:
            del lines[0]
        elif isinstance(lines[0], bytes):
            whole = size + len(lines[0])
            lines[0] = b"".join([*parts, lines[0]]) if whole <= self._limit else self._too_long(parts[0])

    def _begin(self, part: bytes) -> list[BadLine]:
        """Keep the beginning of a line, up to the limit."""
        if self._skipping:
            return []
        self._parts.append(part)
        self._size += len(part)
        if self._size <= self._limit:
            return []
        start = self._parts[0]
        self._parts, self._size, self._skipping = [], 0, True
        return [self._too_long(start)]

    def _too_long(self, start: bytes) -> BadLine:
        problem = f"a line is longer than the limit of {self._limit:,} bytes; raise line_limit"
        return BadLine("too_long", problem, start[:300])
