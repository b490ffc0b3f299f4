"""Take from a text what a copy may lack: comments, quotes, markers of listings, odd bytes."""

import re

import numpy as np

# What may hold what looks like a comment, and all that is none, in one go; or a comment. Repeats
# are bounded, and an escaped quote begins nothing: where the end is missing, each beginning would
# be followed far.
_PYTHON = re.compile(
    rb'((?:[^"\'#\\]++|\\.|"""(?:[^\\]|\\.){0,20000}?"""|\'\'\'(?:[^\\]|\\.){0,20000}?\'\'\''
    rb'|"(?:[^"\\\n]|\\.){0,1000}"|\'(?:[^\'\\\n]|\\.){0,1000}\'|["\'\\])++)|#[^\n]*',
    re.DOTALL,
)
_BRACES = re.compile(
    rb'((?:[^"\'`/\\]++|\\.|"(?:[^"\\\n]|\\.){0,1000}"|\'(?:[^\'\\\n]|\\.){0,1000}\''
    rb'|`(?:[^`\\]|\\.){0,4000}`|["\'`\\]|/(?!/|\*.{0,4000}?\*/))++)'
    rb"|//[^\n]*|/\*.{0,4000}?\*/",
    re.DOTALL,
)
# What `grep -n` and `git grep` put before a line.
_LISTED = re.compile(rb"^[\w./+-]+[:-]\d+[:-]", re.MULTILINE)
# What logs put before a line: a time, the name of a service, the mark of a failure.
_STAMPED = re.compile(
    rb"^(?:[E>](?= )|[\w.-]{1,40} {1,20}\|"
    rb"|\[?(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d[^\s\]]{0,20}\]?)[ \t]+",
    re.MULTILINE,
)
# Dashes, quotes and blanks that typesetting puts for those of ASCII.
_TYPESET = re.compile(rb"\xe2\x80[\x80-\xbf]|\xc2\xa0")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Whatever cannot stand in a printable run becomes the end of one.
_SHOWN = frozenset(b"\t" + bytes(range(ord(" "), ord("~") + 1)))
_PRINTABLE = bytes(byte if byte in _SHOWN else ord("\n") for byte in range(256))
# Bytes of machine code look like letters by chance; three in a row are few.
MIN_RUN = 3
_EDGE = bytes(MIN_RUN)
_STEP_BYTES = 2**16
_BREAK = ord("\n")
_QUOTES_AS_BREAKS = bytes.maketrans(b"\"'`", b"\n\n\n")


def plain_text(data: bytes) -> bytes:
    """Return a text without byte order mark, typeset punctuation, marks of a listing or log."""
    text = data.removeprefix(_BYTE_ORDER_MARK)
    if _STAMPED.match(text):
        text = without_stamps(text)
    elif _LISTED.match(text):
        text = without_listing(text)
    if text.isascii():
        return text
    return _TYPESET.sub(b" ", text) if b"\xe2\x80" in text or b"\xc2\xa0" in text else text


def printable_runs(data: bytes) -> bytes:
    """Return the printable runs of ASCII in any bytes, each on a line, without the shortest."""
    padded = b"".join((_EDGE, data, _EDGE))
    # What is looked at in one go stays in the processor's cache.
    return b"".join(
        _runs(padded[start : start + _STEP_BYTES + 2 * len(_EDGE)])
        for start in range(0, len(data), _STEP_BYTES)
    )


def _runs(padded: bytes) -> bytes:
    """Return the runs of a stretch, given the bytes before and after it."""
    text = np.frombuffer(padded.translate(_PRINTABLE), dtype=np.uint8)
    is_shown = text != _BREAK
    # At the first byte of any three that are shown.
    begins = is_shown[2:] & is_shown[1:-1]
    begins &= is_shown[:-2]
    # A run is kept with the break that follows it.
    size = len(padded) - 2 * MIN_RUN
    is_kept = begins[:size].copy()
    for offset in range(1, MIN_RUN + 1):
        is_kept |= begins[offset : offset + size]
    runs: bytes = text[MIN_RUN:-MIN_RUN][is_kept].tobytes()
    return runs


def without_hash_comments(text: bytes) -> bytes:
    """Cut comments as Python, shells and TOML write them; line numbers stay."""
    return _PYTHON.sub(_kept, text) if b"#" in text else text


def without_brace_comments(text: bytes) -> bytes:
    """Cut comments as C, Java and JavaScript write them."""
    return _BRACES.sub(_kept, text) if b"//" in text or b"/*" in text else text


def _kept(match: re.Match[bytes]) -> bytes:
    kept: bytes | None = match[1]
    return kept or b""


def without_listing(text: bytes) -> bytes:
    """Cut the path and number that `grep -n` puts before each line."""
    return _LISTED.sub(b"", text)


def without_stamps(text: bytes) -> bytes:
    """Cut the time, service or mark that a log puts before each line."""
    return _STAMPED.sub(b"", text)


def quoted_apart(text: bytes) -> bytes:
    """Put each quoted text on a line of its own."""
    return text.translate(_QUOTES_AS_BREAKS)
