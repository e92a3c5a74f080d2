"""Values of GVariant, in which dconf keeps settings: from bytes, to bytes, and as text.

The format is GLib's (docs.gtk.org/glib/gvariant-format-strings.html, and "GVariant Specification 1.0" for the bytes);
little-endian, as on every machine that this program runs on. Values are plain JSON: lists for arrays and tuples, pairs
for entries of dictionaries, {"type", "value"} for variants, {"just": value} or None for maybes.
"""

import struct
from collections.abc import Iterator
from typing import Any

_NUMBERS = {"b": "<?", "y": "<B", "n": "<h", "q": "<H", "i": "<i", "u": "<I", "h": "<i", "x": "<q", "t": "<Q",
            "d": "<d"}  # fmt: skip
_TEXTS = "sog"
#: What GLib's tools write before a value whose type its text does not tell.
_NAMES = {"y": "byte ", "n": "int16 ", "q": "uint16 ", "u": "uint32 ", "h": "handle ", "x": "int64 ", "t": "uint64 ",
          "o": "objectpath ", "g": "signature "}  # fmt: skip
_ESCAPES = {"\\": "\\\\", "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
#: Containers within containers, as many as GLib reads (G_VARIANT_MAX_RECURSION_DEPTH is 128; D-Bus allows 64).
_DEEPEST = 64


def decode(kind: str, data: bytes) -> Any:
    """The value of a type in its bytes. Raises ValueError: these are no such value."""
    try:
        _complete(kind)
        return _decode(kind, data, 0)
    except (struct.error, UnicodeDecodeError, IndexError) as error:
        raise ValueError(f"no value of the type {kind}: {error}") from error


def decode_boxed(data: bytes) -> dict[str, Any]:
    """A variant in its bytes, as {"type", "value"}. Raises ValueError."""
    value: dict[str, Any] = decode("v", data)
    return value


def encode(kind: str, value: Any) -> bytes:
    """The bytes of a value of a type. Raises ValueError: it is none."""
    try:
        _complete(kind)
        return _encode(kind, value)
    except (struct.error, TypeError, KeyError, AttributeError, IndexError) as error:
        raise ValueError(f"no value of the type {kind}: {error}") from error


def as_text(kind: str, value: Any, *, annotate: bool = True) -> str:
    """A value as `gsettings get` and `dconf read` write it. Raises ValueError: it is none of that type."""
    try:
        return "".join(_print(kind, value, annotate))
    except (TypeError, KeyError, AttributeError, IndexError) as error:
        raise ValueError(f"no value of the type {kind}: {error}") from error


def _complete(kind: str) -> None:
    if not kind or _end(kind, 0) != len(kind):
        raise ValueError(f"{kind!r} is not one type")


def _end(kinds: str, start: int, depth: int = 0) -> int:
    """Where the type that begins there ends."""
    char = kinds[start : start + 1]
    if depth > _DEEPEST or not char:
        raise ValueError(f"{kinds!r} is no type")
    if char in _NUMBERS or char in _TEXTS or char == "v":
        return start + 1
    if char in "am":
        return _end(kinds, start + 1, depth + 1)
    if char not in "({":
        raise ValueError(f"{kinds!r} is no type")
    close, at = ")" if char == "(" else "}", start + 1
    while kinds[at : at + 1] != close:
        at = _end(kinds, at, depth + 1)
    return at + 1


def members(kind: str) -> list[str]:
    """The types in a tuple or an entry of a dictionary."""
    found, at = [], 1
    while at < len(kind) - 1:
        end = _end(kind, at)
        found.append(kind[at:end])
        at = end
    return found


def _alignment(kind: str) -> int:
    if kind[0] in _NUMBERS:
        return struct.calcsize(_NUMBERS[kind[0]])
    if kind[0] in _TEXTS:
        return 1
    if kind[0] == "v":
        return 8
    return _alignment(kind[1:]) if kind[0] in "am" else max(map(_alignment, members(kind)), default=1)


def _fixed_size(kind: str) -> int | None:
    """How many bytes every value of a type has; None where they differ."""
    if kind[0] in _NUMBERS:
        return struct.calcsize(_NUMBERS[kind[0]])
    if kind[0] not in "({":
        return None
    at = 0
    for member in members(kind):
        size = _fixed_size(member)
        if size is None:
            return None
        at = _aligned(at, _alignment(member)) + size
    return max(1, _aligned(at, _alignment(kind)))


def _aligned(at: int, alignment: int) -> int:
    return -(-at // alignment) * alignment


def _offset_size(length: int) -> int:
    """Bytes of each offset at the end of a container of so many bytes."""
    return 0 if length == 0 else next(size for size in (1, 2, 4, 8) if length < 1 << 8 * size)


def _decode(kind: str, data: bytes, depth: int) -> Any:
    char = kind[0]
    if depth > _DEEPEST:
        raise ValueError("too deep")
    if char in _NUMBERS:
        (number,) = struct.unpack(_NUMBERS[char], data)
        return number
    if char in _TEXTS:
        if data[-1:] != b"\0":
            raise ValueError("a text without its end")
        return data[:-1].decode()
    if char == "v":
        content, _, inner = data.rpartition(b"\0")
        told = inner.decode("ascii")
        _complete(told)
        return {"type": told, "value": _decode(told, content, depth + 1)}
    if char == "m":
        if not data:
            return None
        fixed = _fixed_size(kind[1:])
        return {"just": _decode(kind[1:], data if fixed is not None else data[:-1], depth + 1)}
    if char == "a":
        return [_decode(kind[1:], piece, depth + 1) for piece in _elements(kind[1:], data)]
    return [_decode(member, piece, depth + 1) for member, piece in _parts(kind, data)]


def _elements(kind: str, data: bytes) -> Iterator[bytes]:
    size, alignment = _fixed_size(kind), _alignment(kind)
    if size is not None:
        if len(data) % size:
            raise ValueError("an array that ends within an element")
        yield from (data[at : at + size] for at in range(0, len(data), size))
        return
    if not data:
        return
    width = _offset_size(len(data))
    table = int.from_bytes(data[-width:], "little")
    if table > len(data) - width or (len(data) - table) % width:
        raise ValueError("an array with wrong offsets")
    start = 0
    for at in range(table, len(data), width):
        start, end = _aligned(start, alignment), int.from_bytes(data[at : at + width], "little")
        yield _piece(data, start, end, table)
        start = end


def _parts(kind: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    kinds = members(kind)
    width = _offset_size(len(data))
    start, frame = 0, len(data)
    for number, member in enumerate(kinds):
        start, size = _aligned(start, _alignment(member)), _fixed_size(member)
        if size is not None:
            end = start + size
        elif number == len(kinds) - 1:
            end = frame
        else:
            frame -= width
            end = int.from_bytes(data[frame : frame + width], "little")
        yield member, _piece(data, start, end, frame)
        start = end


def _piece(data: bytes, start: int, end: int, limit: int) -> bytes:
    if not start <= end <= limit:
        raise ValueError("an offset out of its container")
    return data[start:end]


def _encode(kind: str, value: Any) -> bytes:
    char = kind[0]
    if char in _NUMBERS:
        return struct.pack(_NUMBERS[char], value)
    if char in _TEXTS:
        if "\0" in value:
            raise ValueError("a text cannot hold a zero byte")
        return bytes(value.encode()) + b"\0"
    if char == "v":
        _complete(value["type"])
        return _encode(value["type"], value["value"]) + b"\0" + bytes(value["type"].encode())
    if char == "m":
        if value is None:
            return b""
        return _encode(kind[1:], value["just"]) + (b"" if _fixed_size(kind[1:]) is not None else b"\0")
    if char == "a":
        return _joined([(kind[1:], one) for one in value], is_array=True)
    kinds = members(kind)
    if len(kinds) != len(value):
        raise ValueError("a tuple of another length")
    encoded = _joined(list(zip(kinds, value, strict=True)), is_array=False)
    size = _fixed_size(kind)
    return encoded if size is None else encoded.ljust(size, b"\0")


def _joined(parts: list[tuple[str, Any]], *, is_array: bool) -> bytes:
    body, ends = b"", []
    for number, (kind, value) in enumerate(parts):
        body = body.ljust(_aligned(len(body), _alignment(kind)), b"\0") + _encode(kind, value)
        if _fixed_size(kind) is None and (is_array or number < len(parts) - 1):
            ends.append(len(body))
    if not is_array:  # the offsets of a tuple stand in reverse, so that its first members are found first
        ends.reverse()
    width = next(size for size in (1, 2, 4, 8) if len(body) + size * len(ends) < 1 << 8 * size)
    return body + b"".join(end.to_bytes(width, "little") for end in ends)


def _print(kind: str, value: Any, annotate: bool) -> Iterator[str]:
    char = kind[0]
    if char == "b":
        yield "true" if value else "false"
    elif char == "d":
        text = f"{value:.17g}"
        yield text if any(sign in text for sign in ".eni") else f"{text}.0"
    elif char in _NUMBERS:
        yield (_NAMES.get(char, "") if annotate else "") + (f"0x{value:02x}" if char == "y" else str(value))
    elif char in _TEXTS:
        yield (_NAMES.get(char, "") if annotate else "") + _quoted(value)
    elif char == "v":
        yield f"<{as_text(value['type'], value['value'])}>"
    elif char == "m":
        yield f"@{kind} " if annotate else ""
        if value is None:
            yield "nothing"
        else:
            yield "just " if kind[1] == "m" else ""
            yield from _print(kind[1:], value["just"], False)
    elif kind == "ay" and value and value[-1] == 0 and 0 not in value[:-1]:
        yield "b" + _quoted(bytes(value[:-1]).decode("latin-1"))
    elif char == "a" and not value:
        yield (f"@{kind} " if annotate else "") + ("{}" if kind[1] == "{" else "[]")
    elif char == "a":
        opened, closed = ("{", "}") if kind[1] == "{" else ("[", "]")
        # The first element tells the type of all.
        items = (as_text(kind[1:], one, annotate=annotate and number == 0) for number, one in enumerate(value))
        yield f"{opened}{', '.join(items)}{closed}"
    elif char == "{":
        yield ": ".join(as_text(member, one, annotate=annotate) for member, one in _paired(kind, value))
    else:
        told = [as_text(member, one, annotate=annotate) for member, one in _paired(kind, value)]
        yield f"({told[0]},)" if len(told) == 1 else f"({', '.join(told)})"


def _paired(kind: str, value: Any) -> Iterator[tuple[str, Any]]:
    return zip(members(kind), value, strict=True)


def _quoted(text: str) -> str:
    quote = '"' if "'" in text else "'"
    return quote + "".join(_escaped(char, quote) for char in text) + quote


def _escaped(char: str, quote: str) -> str:
    if char == quote:
        return f"\\{char}"
    if char in _ESCAPES or char.isprintable():
        return _ESCAPES.get(char, char)
    return f"\\u{ord(char):04x}" if ord(char) < 1 << 16 else f"\\U{ord(char):08x}"
