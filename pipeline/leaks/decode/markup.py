"""Take the tags out of HTML and XML: coverage reports, built documentation, source viewers."""

import html
import re
from collections.abc import Iterator

from pipeline.leaks.budget import Meter
from pipeline.leaks.decode.piece import Gap, Inner

# A file with fewer has examples of markup in it and is none.
_MIN_TAGS = 4
# What is no text of a document, from its beginning to its end.
_HIDDEN = (
    (re.compile(rb"<!--"), re.compile(rb"-->")),
    (re.compile(rb"<script\b", re.IGNORECASE), re.compile(rb"</script\s*>", re.IGNORECASE)),
    (re.compile(rb"<style\b", re.IGNORECASE), re.compile(rb"</style\s*>", re.IGNORECASE)),
)
# A line's number, which no copied line begins with.
_NUMBERS = re.compile(
    rb"<(\w+)\s[^<>]*?(?:class=[\"']?[\w\s-]*\b(?:n|ln|lineno\w*|linenos?|line-num\w*|blob-num)\b"
    rb"|href=[\"']#)[^<>]*>\s*\d+\s*</\1>",
    re.IGNORECASE,
)
_BREAKS = re.compile(rb"</(?:p|div|li|tr|h\d|pre|dt|dd|table|ul|ol)\s*>|<br\s*/?>", re.IGNORECASE)
_CELLS = re.compile(rb"</t[dh]\s*>", re.IGNORECASE)
_TAGS = re.compile(rb"</?[A-Za-z!?][^<>]*>")
_NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"


def markup_parts(data: bytes, meter: Meter) -> Iterator[Inner | Gap]:
    """Yield the text of a document, a line for each line, paragraph and row of it."""
    if data.count(b"</") < _MIN_TAGS:
        return
    text = data
    for beginning, end in _HIDDEN:
        text = b"".join(_outside(text, beginning, end))
    text = _NUMBERS.sub(b"", text)
    text = _BREAKS.sub(b"\n", text)
    text = _CELLS.sub(b" ", text)
    text = _TAGS.sub(b"", text)
    if b"&" in text:
        plain = html.unescape(text.decode("utf-8", "surrogateescape"))
        text = plain.replace(_NO_BREAK_SPACE, " ").encode("utf-8", "replace")
    meter.count_decoded(len(text))
    yield Inner(label="html", data=text, form="text")


def _outside(text: bytes, beginning: re.Pattern[bytes], end: re.Pattern[bytes]) -> Iterator[bytes]:
    """Yield what is not between a beginning and the end after it; in one pass, however many."""
    at = 0
    while found := beginning.search(text, at):
        last = end.search(text, found.end())
        if last is None:
            break
        yield text[at : found.start()]
        at = last.end()
    yield text[at:]
