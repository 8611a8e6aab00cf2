"""Merkle trees as in RFC 6962 and 9162: one hash over a log, short proofs that a record is in it and that it only grew.

Leaves are hashes of raw lines, without their ends. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256


def leaf_hash(line: bytes) -> bytes:
    """The leaf of a line."""
    return sha256(b"\0" + line.removesuffix(b"\n")).digest()


def _join(left: bytes, right: bytes) -> bytes:
    return sha256(b"\1" + left + right).digest()


class Frontier:
    """A tree that grows: the roots of its whole subtrees, the largest first, which is all that further leaves need."""

    def __init__(self, size: int = 0, roots: Iterable[bytes] = ()) -> None:
        self.size = size
        self.roots = list(roots)

    def add(self, leaf: bytes) -> None:
        """One more leaf, at the end."""
        self.roots.append(leaf)
        self.size += 1
        carried = self.size
        while not carried & 1:
            self.roots[-2:] = [_join(*self.roots[-2:])]
            carried >>= 1

    @property
    def root(self) -> bytes:
        """The hash of the whole tree."""
        if not self.roots:
            return sha256(b"").digest()
        found = self.roots[-1]
        for left in self.roots[-2::-1]:
            found = _join(left, found)
        return found


def root_of(leaves: Iterable[bytes]) -> bytes:
    """The hash of the tree over these leaves."""
    tree = Frontier()
    for leaf in leaves:
        tree.add(leaf)
    return tree.root


def inclusion_proof(index: int, leaves: Sequence[bytes]) -> list[bytes]:
    """The hashes that lead from one leaf to the root."""
    if len(leaves) <= 1:
        return []
    half = 1 << (len(leaves) - 1).bit_length() - 1
    if index < half:
        return [*inclusion_proof(index, leaves[:half]), root_of(leaves[half:])]
    return [*inclusion_proof(index - half, leaves[half:]), root_of(leaves[:half])]


def consistency_proof(size: int, leaves: Sequence[bytes], *, whole: bool = True) -> list[bytes]:
    """The hashes by which the root over the first `size` leaves, and that over all of them, are both reached."""
    if size in (0, len(leaves)):
        return [] if whole else [root_of(leaves)]
    half = 1 << (len(leaves) - 1).bit_length() - 1
    if size <= half:
        return [*consistency_proof(size, leaves[:half], whole=whole), root_of(leaves[half:])]
    return [*consistency_proof(size - half, leaves[half:], whole=False), root_of(leaves[:half])]
