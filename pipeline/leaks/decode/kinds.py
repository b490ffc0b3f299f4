"""Tell what a file is by its content alone, and who opens it."""

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pipeline.leaks.budget import Meter
from pipeline.leaks.decode import databases, escapes, git, java, streams, tars, zips
from pipeline.leaks.decode.bytecode import bytecode_parts, version_of
from pipeline.leaks.decode.piece import Data, Gap, Inner
from pipeline.sandbox.protocol import MIB

Opener = Callable[[Data, Meter], Iterator[Inner | Gap]]
HEAD_BYTES = 2**13
# Pictures, sounds, films, fonts: what they hold is no text, and compressed besides.
_MEDIA = (
    b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"II*\0", b"MM\0*",
    b"wOFF", b"wOF2", b"OTTO", b"\0\1\0\0\0", b"ttcf", b"OggS", b"fLaC", b"ID3",
    b"\x1aE\xdf\xa3",
)  # fmt: skip
# The same behind the size, or behind the kind of the container.
_MEDIA_LATER = ((4, b"ftyp"), (8, b"WEBP"), (8, b"WAVE"), (8, b"AVI "))
# Archives that nothing here opens.
_UNKNOWN = (
    b"7z\xbc\xaf\x27\x1c", b"Rar!\x1a\x07", b"MSCF\0\0\0\0", b"\xed\xab\xee\xdb", b"hsqs",
    b"LZIP", b"\x04\x22\x4d\x18", b"\x1f\x9d",
)  # fmt: skip
_BZIP2_FIRST = (b"1AY&SY", b"\x17rE8P\x90")
_ZLIB = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
_LZMA = b"\x5d\0\0"
# Who opens these holds them in memory.
_IN_MEMORY_BYTES = 64 * MIB
# A size that is not told, or one below 64 GiB.
_LZMA_SIZES = (b"\xff" * 8, b"\0\0\0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What a file is."""

    name: str
    # None: nobody opens it.
    opener: Opener | None = None
    # A larger one is not opened.
    max_bytes: int | None = None


MEDIA = Kind(name="media")
UNKNOWN = Kind(name="unknown archive")
TEXT = Kind(name="text")
BINARY = Kind(name="binary")
_GZIP = Kind(name="gzip", opener=streams.gzip_parts)
_BZIP2 = Kind(name="bzip2", opener=streams.bzip2_parts)
_XZ = Kind(name="xz", opener=streams.xz_parts)
_ZSTD = Kind(name="zstd", opener=streams.zstd_parts)
_LZMA_KIND = Kind(name="lzma", opener=streams.lzma_parts)
_ZLIB_KIND = Kind(name="zlib", opener=streams.zlib_parts)
_ZIP = Kind(name="zip", opener=zips.zip_parts)
_TAR = Kind(name="tar", opener=tars.tar_parts)
_AR = Kind(name="ar", opener=tars.ar_parts)
_BYTECODE = Kind(name="pyc", opener=bytecode_parts, max_bytes=_IN_MEMORY_BYTES)
_CLASS = Kind(name="class", opener=java.class_parts, max_bytes=_IN_MEMORY_BYTES)
_DATABASE = Kind(name="sqlite", opener=databases.database_parts)
_PACK = Kind(name="pack", opener=git.pack_parts)
_LOOSE = Kind(name="git", opener=git.loose_parts)
_WIDE = Kind(name="wide", opener=escapes.wide_parts, max_bytes=_IN_MEMORY_BYTES)


def kind_of(data: Data) -> Kind:
    """Return what a file is."""
    head = data[:HEAD_BYTES]
    found = _BY_FIRST.get(head[:2], _nobody)(head) or _marked(head)
    if found is not None:
        return found
    if b"\0" not in head:
        return TEXT
    if tars.is_tar(head):
        return _TAR
    return _WIDE if escapes.wide_encoding(head) else BINARY


def _marked(head: bytes) -> Kind | None:
    """Return the kind of a file that has its mark elsewhere, or one of many marks."""
    if head.startswith(_MEDIA) or any(head[at : at + len(it)] == it for at, it in _MEDIA_LATER):
        return MEDIA
    if head.startswith(_UNKNOWN):
        return UNKNOWN
    if version_of(head):
        return _BYTECODE
    return _LOOSE if git.loose_header(head[:32]) else None


def _nobody(_: bytes) -> Kind | None:
    return None


def _starts(magic: bytes, kind: Kind) -> Callable[[bytes], Kind | None]:
    return lambda head: kind if head.startswith(magic) else None


def _is_zlib(head: bytes) -> Kind | None:
    # Two letters are no proof.
    try:
        zlib.decompressobj().decompress(head, HEAD_BYTES)
    except zlib.error:
        return None
    return _ZLIB_KIND


def _is_bzip2(head: bytes) -> Kind | None:
    return _BZIP2 if head[4:10] in _BZIP2_FIRST else None


def _is_lzma(head: bytes) -> Kind | None:
    is_sized = head[5:13] == _LZMA_SIZES[0] or head[10:13] == _LZMA_SIZES[1]
    return _LZMA_KIND if head.startswith(_LZMA) and is_sized else None


def _is_class(head: bytes) -> Kind | None:
    return _CLASS if java.is_class(head) else None


# Most files begin with none of these.
_BY_FIRST: dict[bytes, Callable[[bytes], Kind | None]] = {
    b"\x1f\x8b": _starts(streams.GZIP_MAGIC, _GZIP),
    b"BZ": _is_bzip2,
    b"\xfd7": _starts(streams.XZ_MAGIC, _XZ),
    b"\x28\xb5": _starts(streams.ZSTD_MAGIC, _ZSTD),
    b"\x5d\0": _is_lzma,
    b"PK": _starts(zips.MAGIC, _ZIP),
    b"!<": _starts(tars.AR_MAGIC, _AR),
    b"SQ": _starts(databases.MAGIC, _DATABASE),
    b"\xca\xfe": _is_class,
    b"PA": _starts(git.PACK_MAGIC, _PACK),
    **dict.fromkeys(_ZLIB, _is_zlib),
}
