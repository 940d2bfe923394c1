"""MessagePack without a dependency: what tito's files hold, and nothing more (no extension types)."""

from __future__ import annotations

import struct
from typing import Any

from ..errors import TitoError

_DEPTH_MAX = 32
_FIXED: dict[int, tuple[str, int]] = {
    0xCA: (">f", 4), 0xCB: (">d", 8), 0xCC: (">B", 1), 0xCD: (">H", 2), 0xCE: (">I", 4), 0xCF: (">Q", 8),
    0xD0: (">b", 1), 0xD1: (">h", 2), 0xD2: (">i", 4), 0xD3: (">q", 8),
}  # fmt: skip
_LENGTHS: dict[int, tuple[str, int, str]] = {
    0xC4: (">B", 1, "bin"), 0xC5: (">H", 2, "bin"), 0xC6: (">I", 4, "bin"),
    0xD9: (">B", 1, "str"), 0xDA: (">H", 2, "str"), 0xDB: (">I", 4, "str"),
    0xDC: (">H", 2, "array"), 0xDD: (">I", 4, "array"), 0xDE: (">H", 2, "map"), 0xDF: (">I", 4, "map"),
}  # fmt: skip


def unpack_one(data: memoryview, at: int = 0) -> tuple[Any, int]:
    """The value that begins at ``at``, and the place after it. Binaries are views of ``data``, not copies.

    Raises TitoError when the bytes end early or are not MessagePack.
    """
    try:
        return _value(data, at, 0)
    except (struct.error, IndexError) as error:
        raise TitoError(f"msgpack value at byte {at} ends early") from error


def _value(data: memoryview, at: int, depth: int) -> tuple[Any, int]:
    if depth > _DEPTH_MAX:
        raise TitoError(f"msgpack at byte {at} is nested deeper than {_DEPTH_MAX}")
    tag = data[at]
    at += 1
    if tag <= 0x7F:
        return tag, at
    if tag >= 0xE0:
        return tag - 256, at
    if tag <= 0x8F:
        return _map(data, at, tag & 0x0F, depth)
    if tag <= 0x9F:
        return _array(data, at, tag & 0x0F, depth)
    if tag <= 0xBF:
        return _text(data, at, tag & 0x1F)
    if tag in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[tag], at
    if tag in _FIXED:
        code, size = _FIXED[tag]
        return struct.unpack_from(code, data, at)[0], at + size
    if tag not in _LENGTHS:
        raise TitoError(f"byte {at - 1} is msgpack type 0x{tag:02x}, which tito does not write")
    code, size, kind = _LENGTHS[tag]
    (length,) = struct.unpack_from(code, data, at)
    at += size
    if kind == "map":
        return _map(data, at, length, depth)
    if kind == "array":
        return _array(data, at, length, depth)
    if kind == "str":
        return _text(data, at, length)
    return _bytes(data, at, length), at + length


def _bytes(data: memoryview, at: int, length: int) -> memoryview:
    if at + length > len(data):
        raise IndexError
    return data[at : at + length]


def _text(data: memoryview, at: int, length: int) -> tuple[str, int]:
    return str(_bytes(data, at, length), "utf-8", "replace"), at + length


def _array(data: memoryview, at: int, length: int, depth: int) -> tuple[list[Any], int]:
    if length > len(data) - at:
        raise IndexError
    items = []
    for _ in range(length):
        item, at = _value(data, at, depth + 1)
        items.append(item)
    return items, at


def _map(data: memoryview, at: int, length: int, depth: int) -> tuple[dict[Any, Any], int]:
    if length > len(data) - at:
        raise IndexError
    items = {}
    for _ in range(length):
        key, at = _value(data, at, depth + 1)
        items[key], at = _value(data, at, depth + 1)
    return items, at
