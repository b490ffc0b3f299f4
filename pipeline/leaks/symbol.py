"""The record of what a copy of one symbol would hold."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolPrints:
    """The fingerprints of a symbol: for each kind the keys, and what finding one tells, in bits.

    Example: `SymbolPrints(symbol="pkg/units.py:convert", name="convert", lines={81…: 6.5}, …)`.
    """

    # `path:qualname`; of code outside all definitions, and of other files than Python's, `path:`.
    symbol: str
    # Last part of the qualified name; empty when there is none.
    name: str = ""
    # Of a function, in order, without `self` and `cls`.
    parameters: tuple[str, ...] = ()
    # Of a function, names that stand in every copy of its shape, whatever its locals are called.
    anchors: tuple[str, ...] = ()
    # Lines of the body, without comments and docstrings.
    lines: Mapping[int, float] = field(default_factory=dict)
    # Runs of eight words of the body.
    grams: Mapping[int, float] = field(default_factory=dict)
    # Shapes of the bodies of functions, whatever their local names.
    trees: Mapping[int, float] = field(default_factory=dict)
    # Pairs of a code object's name and a name or constant that it holds.
    codes: Mapping[int, float] = field(default_factory=dict)
    # Names with all their parameters.
    signatures: Mapping[int, float] = field(default_factory=dict)
    # Lines and runs of the docstring, or of prose.
    phrases: Mapping[int, float] = field(default_factory=dict)
    # Texts in the code, each line of them alone.
    literals: Mapping[int, float] = field(default_factory=dict)
    # The name itself.
    names: Mapping[int, float] = field(default_factory=dict)
    # Of code that no parser here reads, each word: they outlast its compiler.
    words: Mapping[int, float] = field(default_factory=dict)


# The fields of SymbolPrints that hold keys.
KINDS = (
    "lines", "grams", "trees", "codes", "signatures", "phrases", "literals", "names", "words",
)  # fmt: skip


def with_keys(prints: SymbolPrints, choose: Callable[[str], Mapping[int, float]]) -> SymbolPrints:
    """Return the fingerprints of the same symbol with other keys, chosen kind by kind."""
    return SymbolPrints(
        symbol=prints.symbol,
        name=prints.name,
        parameters=prints.parameters,
        anchors=prints.anchors,
        lines=choose("lines"),
        grams=choose("grams"),
        trees=choose("trees"),
        codes=choose("codes"),
        signatures=choose("signatures"),
        phrases=choose("phrases"),
        literals=choose("literals"),
        names=choose("names"),
        words=choose("words"),
    )


def keys_of(prints: SymbolPrints, kind: str) -> Mapping[int, float]:
    """Return the keys of one of the `KINDS`, with what each tells."""
    keys: Mapping[int, float] = getattr(prints, kind)
    return keys
