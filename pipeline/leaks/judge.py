"""Say what of each symbol can be recovered from a piece, by the keys that were found in it.

The thresholds stand between what copies of code of 33 libraries hold and what the files of 220
packages that have nothing to do with them do.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.leaks.symbol import KINDS, SymbolPrints, keys_of
from pipeline.task.certificate import Part

# A share of what something tells is enough if it is so many bits: any share of a long body that
# nobody writes by chance, all of a short one, or nearly all of it with its name or texts.
LARGE, NEARLY_ALL, ALL = 0.25, 0.6, 0.9
MIN_LONG_BITS, MIN_SHORT_BITS, MIN_PHRASES_BITS = 16.0, 10.0, 12.0
# Words without their order are in many texts about the same.
MIN_WORDS_BITS = 48.0
MIN_SIGNATURE_BITS = 9.0
MIN_NAME_BITS = 4.0
# Runs overlap: four say about as much as one line.
OVERLAP = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """What a piece gives away of a symbol.

    Example: `Recovered(symbol="pkg/units.py:convert", parts=("name", "body"), share=0.93)`.
    """

    # `path:qualname`.
    symbol: str
    # In the order of `Part`, at least one.
    parts: tuple[Part, ...]
    # How much of the body was found, by what it tells; 0 to 1.
    share: float


def judge(found: frozenset[int], prints: Sequence[SymbolPrints]) -> tuple[Recovered, ...]:
    """Return what the keys of one piece give away of each symbol, in the order of the symbols."""
    judged = (_judge_symbol(found, it) for it in prints)
    return tuple(it for it in judged if it.parts)


def provable(prints: SymbolPrints) -> tuple[Part, ...]:
    """Return the parts of a symbol that a whole copy of it would be known by.

    A body of a line or two that anybody could write is not among them, nor is a common name.
    """
    everything = frozenset(key for kind in KINDS for key in keys_of(prints, kind))
    return next((it.parts for it in judge(everything, [prints])), ())


def _judge_symbol(found: frozenset[int], prints: SymbolPrints) -> Recovered:
    kinds = {kind: _found(found, keys_of(prints, kind)) for kind in KINDS}
    is_there: dict[Part, bool] = {
        "name": kinds["names"].bits >= MIN_NAME_BITS,
        "signature": kinds["signatures"].bits >= MIN_SIGNATURE_BITS,
        "docstring": kinds["phrases"].holds(LARGE, bits=MIN_PHRASES_BITS),
        "body": _has_body(kinds),
    }
    share = max(kinds[kind].share for kind in ("lines", "grams", "codes", "trees", "words"))
    return Recovered(
        symbol=prints.symbol,
        parts=tuple(part for part, is_it in is_there.items() if is_it),
        share=round(share, 3),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """How much of one kind was found."""

    bits: float
    # Of all that the kind tells; 0 when it tells nothing.
    share: float

    def holds(self, share: float, *, bits: float) -> bool:
        """Tell whether this much was found."""
        return self.share >= share and self.bits >= bits


def _found(found: frozenset[int], keys: Mapping[int, float]) -> Found:
    total = sum(keys.values())
    bits = sum(told for key, told in keys.items() if key in found)
    return Found(bits=bits, share=bits / total if total else 0.0)


def _has_body(kinds: Mapping[str, Found]) -> bool:
    text = Found(
        bits=kinds["lines"].bits + OVERLAP * kinds["grams"].bits,
        share=max(kinds["lines"].share, kinds["grams"].share),
    )
    if text.holds(LARGE, bits=MIN_LONG_BITS) or text.holds(ALL, bits=MIN_SHORT_BITS):
        return True
    if kinds["codes"].holds(NEARLY_ALL, bits=MIN_LONG_BITS):
        return True
    if kinds["words"].holds(NEARLY_ALL, bits=MIN_WORDS_BITS):
        return True
    if kinds["trees"].bits >= MIN_SHORT_BITS:
        return True
    named = kinds["names"].bits + kinds["literals"].bits
    whole = [it.bits for it in (text, kinds["codes"], kinds["trees"]) if it.share >= NEARLY_ALL]
    return named > 0 and named + max(whole, default=-named) >= MIN_SHORT_BITS
