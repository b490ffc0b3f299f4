"""Match as one would write it in an afternoon: what the Matcher is measured against."""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping

from pipeline.leaks.match import Form

# As in the facts that the fingerprints follow: characters of a line, words of a run.
MIN_LINE, RUN_WORDS = 18, 8
_WORD = re.compile(r"[A-Za-z_]\w*|\d+|[^\w\s]")
_NAME = re.compile(r"[A-Za-z_]\w{3,}")
_PRINTABLE = re.compile(rb"[\x20-\x7e\t]{4,}")


class NaiveMatcher:
    """All lines, runs of words, names and code objects of a Snapshot, in plain sets."""

    def __init__(self, snapshot: Mapping[str, bytes]) -> None:
        texts = [content.decode("utf-8", "replace") for content in snapshot.values()]
        self._keys = {key for text in texts for key in _keys_of(text)}
        self.digest = hashlib.sha256("\n".join(sorted(self._keys)).encode()).hexdigest()

    def match(self, data: bytes, form: Form) -> frozenset[int]:
        """Return the keys that a piece of data holds."""
        found = set()
        for key in _keys_of(_text_of(data, form)):
            if key in self._keys:
                found.add(_number(key))
        return frozenset(found)


def _text_of(data: bytes, form: Form) -> str:
    if form == "binary":
        data = b"\n".join(_PRINTABLE.findall(data))
    if form == "code":
        return "\n".join(_words_of_code(data.splitlines()))
    return data.decode("utf-8", "replace")


def _words_of_code(lines: Iterable[bytes]) -> Iterator[str]:
    for line in lines:
        code = json.loads(line)
        yield " ".join([*code["names"], *code["varnames"], *map(str, code["consts"])])


def _keys_of(text: str) -> Iterator[str]:
    """Yield whitespace-free lines, runs of words, and names."""
    for line in text.splitlines():
        squeezed = "".join(line.split())
        if len(squeezed) >= MIN_LINE:
            yield squeezed
    words = _WORD.findall(text)
    for at in range(len(words) - RUN_WORDS + 1):
        yield " ".join(words[at : at + RUN_WORDS])
    yield from _NAME.findall(text)


def _number(key: str) -> int:
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") >> 1
