"""Undo what texts are wrapped in: escapes of strings, UTF-16, diffs, base64."""

import base64
import binascii
import re
from collections.abc import Iterator

from pipeline.leaks.budget import Meter
from pipeline.leaks.decode.piece import Data, Gap, Inner

# Also one that does not end, so that no part is looked at twice.
_STRING = re.compile(rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)"?', re.DOTALL)
_ESCAPE = re.compile(rb"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_LETTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"b": b"\b", b"f": b"\f"}
# A line break as most programs write it, and as the first protocol of pickle does.
_NEWLINES = (b"\\n", b"\\u000a")
_INDENTED_MARK = re.compile(rb"^[-+ ]", re.MULTILINE)
_HUNK = b"\n@@ -"
_INLINE = re.compile(rb";base64,([A-Za-z0-9+/]{64,}={0,2})")
# Of the bytes that tell an encoding; text in Latin letters has a zero in every second one.
_SAMPLE_BYTES = 2**12
_MOSTLY = 0.7
_MARKS = {
    b"\xff\xfe\0\0": "utf-32-le", b"\0\0\xfe\xff": "utf-32-be",
    b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be",
}  # fmt: skip


def wide_encoding(head: bytes) -> str | None:
    """Return the encoding of a text in letters of two or four bytes; None for anything else."""
    for mark, encoding in _MARKS.items():
        if head.startswith(mark):
            return encoding
    sample = head[:_SAMPLE_BYTES]
    even, odd = sample[::2], sample[1::2]
    if len(sample) < 32 or not sample.count(0):  # noqa: PLR2004  too short to tell
        return None
    if odd.count(0) > _MOSTLY * len(odd) and even.count(0) < (1 - _MOSTLY) * len(even):
        return "utf-16-le"
    if even.count(0) > _MOSTLY * len(even) and odd.count(0) < (1 - _MOSTLY) * len(odd):
        return "utf-16-be"
    return None


def wide_parts(data: Data, meter: Meter) -> Iterator[Inner | Gap]:
    """Yield a text in letters of two or four bytes as UTF-8."""
    encoding = wide_encoding(data[:_SAMPLE_BYTES])
    assert encoding is not None
    text = data[:].decode(encoding, "replace").removeprefix("\ufeff").encode("utf-8", "replace")
    meter.count_decoded(len(text))
    yield Inner(label=encoding[:6], data=text)


def escaped_parts(data: bytes, meter: Meter) -> Iterator[Inner | Gap]:
    """Yield what the strings in a text say where they are written with escapes."""
    if not any(it in data for it in _NEWLINES):
        return
    is_json = data[:64].lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in {b"{", b"["}
    text = _json_strings(data) if is_json else _escaped_lines(data)
    if text:
        meter.count_decoded(len(text))
        yield Inner(label="json" if is_json else "escapes", data=text, form="text")


def diff_parts(data: bytes, meter: Meter) -> Iterator[Inner | Gap]:
    """Yield the lines of a diff without its marks."""
    if _HUNK in data:
        text = _INDENTED_MARK.sub(b"", data)
        meter.count_decoded(len(text))
        yield Inner(label="diff", data=text, form="text")


def inline_parts(data: bytes, meter: Meter) -> Iterator[Inner | Gap]:
    """Yield files that a text carries in base64."""
    if b";base64," not in data:
        return
    for found in _INLINE.finditer(data):
        try:
            content = base64.b64decode(found[1] + b"=" * (-len(found[1]) % 4))
        except binascii.Error:
            continue
        meter.count_decoded(len(content))
        yield Inner(label=f"base64@{found.start(1)}", data=content)


def _json_strings(data: bytes) -> bytes:
    """Return the strings of JSON, also of a broken one, each on a line of its own.

    Lines of a notebook are strings in a list, each with its line break.
    """
    # An object for each of many short strings would take several times as much.
    found = bytearray()
    for string in _STRING.finditer(data):
        text = string[1]
        found += _unescaped(text) if b"\\" in text else text
        if not found.endswith(b"\n"):
            found += b"\n"
    return bytes(found)


def _escaped_lines(data: bytes) -> bytes:
    """Return the lines with line breaks in strings, and these strings by themselves.

    Which quotes are whose cannot be told: `'` may be a letter of a text.
    """
    lines = b"\n".join(_lines_with_breaks(data))
    return _unescaped(lines) + b"\n" + (_json_strings(lines) if b'"' in lines else b"")


def _lines_with_breaks(data: bytes) -> Iterator[bytes]:
    for newline in _NEWLINES:
        at = data.find(newline)
        while at >= 0:
            end = data.find(b"\n", at)
            end = len(data) if end < 0 else end
            yield data[data.rfind(b"\n", 0, at) + 1 : end]
            at = data.find(newline, end)


def _unescaped(text: bytes) -> bytes:
    return _ESCAPE.sub(_letter, text)


def _letter(found: re.Match[bytes]) -> bytes:
    escape = found[1]
    if len(escape) > 1:
        return chr(int(escape[1:], 16)).encode("utf-8", "replace")
    return _LETTERS.get(escape, escape)
