"""Find the keys of a Snapshot in anything that a solver could read."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

import numpy as np

from pipeline.leaks.code import plain_elements
from pipeline.leaks.normalise import (
    plain_text,
    printable_runs,
    quoted_apart,
    without_brace_comments,
    without_hash_comments,
    without_listing,
    without_stamps,
)
from pipeline.leaks.python_prints import MODULE, outlines_of, pair_key, signature_key
from pipeline.leaks.shapes import Wanted, shapes_in
from pipeline.leaks.signatures import Signature, signatures_in_binary, signatures_in_text
from pipeline.leaks.symbol import KINDS, SymbolPrints, keys_of
from pipeline.leaks.table import KeyTable
from pipeline.leaks.weigh import name_key
from pipeline.leaks.words import (
    Words,
    find_words,
    glued_word_keys,
    line_keys,
    read_words,
    run_keys,
    word_keys,
)

Form = Literal["text", "binary", "code"]

# Raised by every change of what a key is or where it is found: verdicts of others are void then.
VERSION = 3
# A piece is read in parts, so that the memory does not grow with it; they overlap.
PART_BYTES, OVERLAP_BYTES = 2**16, 2**10
# A name or signature that tells less is not looked for.
MIN_NAME_BITS, MIN_SIGNATURE_BITS = 4.0, 9.0
# A piece that tells less of each symbol at first sight is not looked at closely.
MIN_CLOSE_BITS = 4.0
# Functions of names that tell less are parsed only in such a piece: each module has `__init__`.
MIN_SHAPED_BITS = 2.0
# A shape that tells less is of any function: `pass`, `return None`.
MIN_SHAPE_BITS = 4.0


class Matcher:
    """All keys of a Snapshot, ready to be found in pieces of data."""

    def __init__(self, prints: Iterable[SymbolPrints]) -> None:
        held = tuple(prints)
        kinds = {kind: _keys_of(held, kind) for kind in KINDS}
        self.digest = _digest_of(kinds)
        self._texts = KeyTable(
            kinds["lines"] | kinds["grams"] | kinds["phrases"] | kinds["literals"]
        )
        self._signatures = _by_name(held)
        self._telling = frozenset(_telling_names(held))
        self._names = KeyTable(self._telling | self._signatures.keys())
        self._codes, self._shapes = kinds["codes"], kinds["trees"]
        self._outlines = outlines_of(self._shapes)
        shaped = [it for it in held if _bits(it, "trees") >= MIN_SHAPE_BITS]
        self._shaped = _anchors_by_name(shaped)
        self._telling_shaped = _anchors_by_name(
            it for it in shaped if _bits(it, "names") >= MIN_SHAPED_BITS
        )
        self._told = _told_of(held)
        self._owners = frozenset(it.name for it in held) | {MODULE}

    def match(self, data: bytes, form: Form) -> frozenset[int]:
        """Return the keys that a piece of data holds.

        Args:
            data: decoded as far as it can be.
            form: `text` of source or prose; `binary`, in which texts stand; `code`, one code
                object a line as JSON: `{"name", "qualname", "names", "varnames", "consts"}`.
        """
        if form == "code":
            return frozenset(self._match_code(data))
        text = printable_runs(data) if form == "binary" else plain_text(data)
        found, named = self._match_words(text, is_binary=form == "binary")
        wanted = [it for key in named for it in self._signatures.get(key, ())]
        if form == "binary":
            found.update(signatures_in_binary(data, wanted))
        else:
            found.update(signatures_in_text(text, wanted))
            if (found or named) and b"def " in text:
                found |= self._shapes_in(text, found)
        # A name alone is no reason to read a piece several times.
        if self._is_telling(found):
            ways = _WAYS_OF_BINARY if form == "binary" else _WAYS_OF_TEXT
            # Most texts are the same in most ways.
            for other in {way(text) for way in ways} - {text}:
                found |= self._match_texts(other)
        return frozenset(found | (named & self._telling))

    def _is_telling(self, found: set[int]) -> bool:
        told: dict[int, float] = {}
        for number, bits in (it for key in found for it in self._told[key]):
            told[number] = told.get(number, 0.0) + bits
        return max(told.values(), default=0.0) >= MIN_CLOSE_BITS

    def _shapes_in(self, text: bytes, found: set[int]) -> frozenset[int]:
        shapes = shapes_in(text, self._worth_parsing(found), outlines=self._outlines)
        return self._shapes.intersection(shapes)

    def _worth_parsing(self, found: set[int]) -> Wanted:
        """Return the functions to parse in a piece that holds some lines or runs."""
        return self._shaped if self._is_telling(found) else self._telling_shaped

    def _match_words(self, text: bytes, *, is_binary: bool = False) -> tuple[set[int], set[int]]:
        """Return the keys of lines and runs, and those of names."""
        found: set[int] = set()
        named: set[int] = set()
        for part in parts_of(text):
            places = find_words(part)
            words = read_words(part, places)
            named |= self._names.found_in(word_keys(words.hashes))
            if is_binary:
                named |= self._names.found_in(glued_word_keys(part, places))
            found |= self._texts_in(words)
        return found, named

    def _match_texts(self, text: bytes) -> set[int]:
        """Return the keys of lines and runs alone."""
        return {key for part in parts_of(text) for key in self._texts_in(read_words(part))}

    def _texts_in(self, words: Words) -> set[int]:
        keys = np.concatenate((line_keys(words), run_keys(words.hashes)))
        return self._texts.found_in(keys)

    def _match_code(self, data: bytes) -> Iterator[int]:
        texts: set[str] = set()
        for line in data.splitlines():
            code = json.loads(line)
            owner = _owner_of(code)
            elements = set(plain_elements([code["names"], code["varnames"], code["consts"]]))
            texts |= {owner, *elements}
            if owner in self._owners:
                yield from self._codes.intersection(pair_key(owner, it) for it in elements)
                yield from self._match_header(code)
        joined = "\n".join(sorted(texts)).encode("utf-8", "replace")
        found, named = self._match_words(joined)
        yield from found | (named & self._telling)

    def _match_header(self, code: dict[str, Any]) -> Iterator[int]:
        """Yield the signature of a code object: its first variables are the parameters."""
        name = code["name"]
        for it in self._signatures.get(name_key(name), ()) if name.isidentifier() else ():
            given = [name for name in code["varnames"] if name not in {"self", "cls"}]
            wanted = [parameter.decode() for parameter in it.parameters]
            if sorted(given[: len(wanted)]) == sorted(wanted):
                yield it.key


_WAYS_OF_TEXT: tuple[Callable[[bytes], bytes], ...] = (
    without_hash_comments, without_brace_comments, without_listing, without_stamps,
    quoted_apart,
)  # fmt: skip
_WAYS_OF_BINARY: tuple[Callable[[bytes], bytes], ...] = (quoted_apart,)


def parts_of(
    text: bytes, *, size: int = PART_BYTES, overlap: int = OVERLAP_BYTES
) -> Iterator[bytes]:
    """Yield a text in parts that end with a line where they can, and overlap."""
    start = 0
    while len(text) - start > size:
        end = text.rfind(b"\n", start + size // 2, start + size) + 1 or start + size
        yield text[start:end]
        start = text.find(b"\n", end - overlap, end - 1) + 1 or end - overlap
    yield text[start:] if start else text


def _keys_of(prints: Iterable[SymbolPrints], kind: str) -> frozenset[int]:
    return frozenset(key for it in prints for key in keys_of(it, kind))


def _told_of(prints: Sequence[SymbolPrints]) -> dict[int, list[tuple[int, float]]]:
    """Return by key the numbers of the symbols that it is of, with what it tells of each."""
    told: dict[int, list[tuple[int, float]]] = {}
    for number, it in enumerate(prints):
        of_symbol = {key: bits for kind in KINDS for key, bits in keys_of(it, kind).items()}
        for key, bits in of_symbol.items():
            told.setdefault(key, []).append((number, bits))
    return told


def _bits(prints: SymbolPrints, kind: str) -> float:
    return sum(keys_of(prints, kind).values())


def _digest_of(kinds: dict[str, frozenset[int]]) -> str:
    digest = hashlib.sha256(f"regrow-prints-{VERSION}\n".encode())
    for kind in KINDS:
        keys = sorted(kinds[kind])
        digest.update(f"{kind} {len(keys)}\n".encode())
        digest.update(b"".join(key.to_bytes(8, "big") for key in keys))
    return digest.hexdigest()


def _telling_names(prints: Iterable[SymbolPrints]) -> Iterator[int]:
    for it in prints:
        yield from (key for key, bits in it.names.items() if bits >= MIN_NAME_BITS)
        yield from it.words


def _anchors_by_name(prints: Iterable[SymbolPrints]) -> Wanted:
    found: dict[bytes, list[tuple[bytes, ...]]] = {}
    for it in prints:
        found.setdefault(it.name.encode(), []).append(tuple(word.encode() for word in it.anchors))
    return found


def _by_name(prints: Iterable[SymbolPrints]) -> dict[int, list[Signature]]:
    """Return the signatures that tell enough, by the key of the name that they begin with."""
    found: dict[int, Signature] = {}
    for it in prints:
        wanted = Signature(
            key=signature_key(it.name, it.parameters),
            name=it.name.encode(),
            parameters=tuple(name.encode() for name in it.parameters),
        )
        if it.signatures.get(wanted.key, 0.0) >= MIN_SIGNATURE_BITS:
            found[wanted.key] = wanted
    named: dict[int, list[Signature]] = {}
    for _, signature in sorted(found.items()):
        named.setdefault(name_key(signature.name.decode()), []).append(signature)
    return named


def _owner_of(code: dict[str, Any]) -> str:
    """Return the name of the definition that a code object belongs to."""
    outer: str = (code.get("qualname") or code["name"]).partition(".<locals>")[0]
    return outer.rpartition(".")[2]
