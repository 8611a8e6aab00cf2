"""The C library through `_ctypes`, which `ctypes` is made of: that package takes a sixth of a cold start to import."""

from __future__ import annotations

import _ctypes
import os
from _ctypes import Structure, addressof, byref, get_errno

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from ctypes import Array, c_char, c_int, c_long, c_size_t, c_uint, c_uint32, c_ulong, c_ushort, c_void_p
else:

    def _simple(code: str) -> type:
        return type(f"c_{code}", (_ctypes._SimpleCData,), {"_type_": code})  # noqa: SLF001 - the base of every `c_…`

    c_char, c_ushort, c_int, c_uint, c_long, c_ulong, c_void_p = map(_simple, "cHiIlLP")
    c_size_t, c_uint32 = c_ulong, c_uint

__all__ = [
    "Structure", "addressof", "buffer", "byref", "c_int", "c_long", "c_size_t", "c_uint", "c_uint32", "c_ulong",
    "c_ushort", "c_void_p", "failure", "function", "get_errno",
]  # fmt: skip

_LIBRARY: int = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # None: this program, and the C library in it


class _Int(_ctypes.CFuncPtr):
    _flags_ = _ctypes.FUNCFLAG_CDECL | _ctypes.FUNCFLAG_USE_ERRNO
    _restype_ = c_int


class _Long(_ctypes.CFuncPtr):
    _flags_ = _Int._flags_
    _restype_ = c_long


def function(name: str, *, long: bool = False) -> Callable[..., int]:
    """A function of the C library that keeps `errno`; it returns an int, or a long."""
    found: Callable[..., int] = (_Long if long else _Int)(_ctypes.dlsym(_LIBRARY, name))
    return found


def failure() -> OSError:
    """The error of the last call."""
    error = get_errno()
    return OSError(error, os.strerror(error))


def buffer(content: bytes | int) -> Array[c_char]:
    """Memory of our own: these bytes, or so many zeros."""
    size = content if isinstance(content, int) else len(content)
    memory: Array[c_char] = (c_char * size)()
    if not isinstance(content, int):
        memory.raw = content
    return memory
