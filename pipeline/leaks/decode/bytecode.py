"""Show Python's bytecode as the names, constants and texts that it holds."""

import json
from collections.abc import Iterator

from pipeline.leaks.budget import Meter
from pipeline.leaks.decode.marshalled import CodeObject, MarshalError, Version, read_code
from pipeline.leaks.decode.piece import Data, Gap, Inner

# The first magic number of each version, oldest first, and what the next one begins with.
_MAGICS = (
    (3360, (3, 6)), (3390, (3, 7)), (3400, (3, 8)), (3420, (3, 9)), (3430, (3, 10)),
    (3450, (3, 11)), (3500, (3, 12)), (3550, (3, 13)), (3600, (3, 14)),
)  # fmt: skip
_NEXT_MAGIC = 3650
# A time and a size, or a hash, stand before the code; flags since 3.7.
_OLD_HEADER, _HEADER = 12, 16
_LAST_OLD = (3, 6)
# Bytes constants that may be a file.
_MIN_BYTES = 64


def version_of(head: bytes) -> Version | None:
    """Return the version of the interpreter that compiled a file; None when it is no bytecode."""
    magic = int.from_bytes(head[:2], "little")
    if head[2:4] != b"\r\n" or magic >= _NEXT_MAGIC:
        return None
    return next((version for first, version in reversed(_MAGICS) if magic >= first), None)


def bytecode_parts(data: Data, meter: Meter) -> Iterator[Inner | Gap]:
    """Yield the code objects as JSON lines, all texts in them, and constants that may be files.

    Raises:
        SpentError: the file, or the whole scan, has used too much.
    """
    version = version_of(data[:4])
    assert version is not None
    label = f"pyc {version[0]}.{version[1]}"
    start = _OLD_HEADER if version <= _LAST_OLD else _HEADER
    try:
        module = read_code(data[:], start, version=version)
    except MarshalError:
        yield Gap(decoders=(label,), why="broken")
        yield Inner(label=label, data=data, form="binary")
        return
    records: list[str] = []
    # Each once: names come in every function that uses them.
    texts: dict[str, None] = {}
    for qualname, code in _walk(module, ""):
        meter.check()
        records.append(_record(qualname, code))
        texts.update(dict.fromkeys(_texts((code.name, code.names, code.varnames, code.consts))))
        for constant in code.consts:
            if isinstance(constant, bytes) and len(constant) >= _MIN_BYTES:
                yield Inner(label=f"{label}:bytes", data=constant)
    yield Inner(label=label, data="\n".join(records).encode(), form="code")
    yield Inner(label=label, data="\n".join(texts).encode("utf-8", "replace"), form="text")


def _walk(code: CodeObject, qualname: str) -> Iterator[tuple[str, CodeObject]]:
    """Yield a code object and all inside of it, each with its qualified name."""
    yield code.qualname or qualname or code.name, code
    for inner in code.consts:
        if isinstance(inner, CodeObject):
            where = f"{qualname}.<locals>" if code.is_function else qualname
            yield from _walk(inner, f"{where}.{inner.name}".lstrip("."))


def _record(qualname: str, code: CodeObject) -> str:
    found = {
        "name": code.name,
        "qualname": qualname,
        "names": code.names,
        "varnames": code.varnames,
        "consts": [
            it if isinstance(it, str) else _plain(it)
            for it in code.consts
            if not isinstance(it, CodeObject)
        ],
    }
    return json.dumps(found)


def _plain(value: object) -> object:
    """Return a text as it is, a tuple as a list, and of all else how Python writes it."""
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return [_plain(it) for it in value]
    return repr(value)


def _texts(values: tuple[object, ...]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, tuple):
            yield from _texts(value)
