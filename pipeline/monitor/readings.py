"""Read what a tool printed in each way that it may hide code in: escapes, dumps, listings."""

import ast
import base64
import binascii
import bz2
import html
import json
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from pipeline.leaks.match import Form

BASE64 = re.compile(rb"(?:[A-Za-z0-9+/]{60,}\r?\n)*[A-Za-z0-9+/]{40,}={0,2}")
HEX = re.compile(rb"(?:[0-9a-f]{2}){32,}")
# A line of `xxd`, `hexdump -C` or `od -x`: an address, then bytes.
DUMP = re.compile(
    rb"^[0-9a-f]{6,8}:?[ ]{1,3}((?:[0-9a-f]{2}[ ]{0,2}){2,16})(?:[ ]|$)", re.MULTILINE
)
ESCAPED = re.compile(r"\\[nrt\"'\\]|\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}")
TAG = re.compile(r"<[^<>\n]{1,200}>")
CODE_OBJECT = re.compile(r"<code object ([^\s>]+) at ")
INSTRUCTION = re.compile(r"^.*?\b([A-Z][A-Z_]{3,})\s+\d+\s+\((.*)\)\s*$")
# What a base64 text may decompress to.
MAX_BYTES = 2**20
UNPACKERS: tuple[Callable[[bytes], bytes], ...] = (
    lambda data: zlib.decompressobj(47).decompress(data, MAX_BYTES),
    lambda data: bz2.BZ2Decompressor().decompress(data, MAX_BYTES),
    lambda data: lzma.LZMADecompressor().decompress(data, MAX_BYTES),
)

Reading = tuple[bytes, Form]


def readings_of(text: str) -> Iterator[Reading]:
    """Yield a text as it is, then as what it may spell."""
    data = text.encode("utf-8", "replace")
    yield data, "text"
    if ESCAPED.search(text):
        yield _unescaped(text).encode("utf-8", "replace"), "text"
    if TAG.search(text):
        yield html.unescape(TAG.sub("", text)).encode("utf-8", "replace"), "text"
    for decoded in _decoded(data):
        yield decoded, "text"
        yield decoded, "binary"
    if listing := _listed(text):
        yield listing, "code"
    yield data, "binary"


def _unescaped(text: str) -> str:
    """Return a text with the escapes of strings read; what is none stays."""
    known = {"\\n": "\n", "\\r": "\r", "\\t": "\t"}

    def read(found: re.Match[str]) -> str:
        escape = found[0]
        if escape in known:
            return known[escape]
        if escape[1] in "ux":
            return chr(int.from_bytes(bytes.fromhex(escape[2:])))
        return escape[1]

    return ESCAPED.sub(read, text)


def _decoded(data: bytes) -> Iterator[bytes]:
    """Yield the bytes that base64, hexadecimal digits and dumps stand for."""
    for found in BASE64.finditer(data):
        digits = found[0].replace(b"\r", b"").replace(b"\n", b"")
        yield from _unpacked(base64.b64decode(digits[: len(digits) // 4 * 4]))
    for found in HEX.finditer(data):
        yield from _unpacked(binascii.unhexlify(found[0]))
    if lines := DUMP.findall(data):
        digits = b"".join(re.sub(rb"\s", b"", line) for line in lines)
        yield binascii.unhexlify(digits[: len(digits) // 2 * 2])


def _unpacked(data: bytes) -> Iterator[bytes]:
    yield data
    for unpack in UNPACKERS:
        try:
            yield unpack(data)
        except (zlib.error, OSError, EOFError, lzma.LZMAError, ValueError):
            continue


@dataclass(slots=True)
class _Code:
    """A code object while its listing is read."""

    name: str
    names: list[str] = field(default_factory=list)
    varnames: list[str] = field(default_factory=list)
    consts: list[object] = field(default_factory=list)


def _listed(text: str) -> bytes:
    """Return the code objects of a disassembler's listing, as the Matcher takes them."""
    codes = [_Code(name="<module>")]
    for line in text.splitlines():
        if line.startswith("Disassembly of") and (found := CODE_OBJECT.search(line)):
            codes.append(_Code(name=found[1]))
        elif found := INSTRUCTION.match(line):
            _take(codes[-1], found[1], found[2])
    told = [
        {"name": it.name, "qualname": it.name, "names": it.names, "varnames": it.varnames,
         "consts": it.consts}
        for it in codes
        if it.names or it.varnames or it.consts
    ]  # fmt: skip
    return "\n".join(map(json.dumps, told)).encode()


def _take(code: _Code, name: str, value: str) -> None:
    """Take one instruction's argument for what it is."""
    if name.endswith("CONST"):
        code.consts.append(_constant(value))
    elif name.endswith(("FAST", "DEREF", "CLOSURE")):
        code.varnames.append(value)
    else:
        code.names.append(value.removeprefix("NULL + ").removesuffix(" + NULL|self"))


def _constant(value: str) -> object:
    try:
        constant = ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return value
    return constant if isinstance(constant, str | int | float) else value
