"""Say how one module mentions names: the records that a scan fills."""

from dataclasses import dataclass
from typing import Literal

from pipeline.language.python.arms import Arm
from pipeline.language.python.bindings import Binding
from pipeline.language.python.guards import Guard
from pipeline.language.python.symbols import Definition, Span

UseKind = Literal["read", "called", "decorator", "base class", "string", "doctest"]
# What of a statement that runs at import can go without the rest: an element of a list, set, tuple
# or dictionary, or all of a statement that is only a call, as registrations are.
Row = Literal["", "element", "statement"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """A place that mentions a name other than by importing or exporting it.

    Example: `Use(path="a/b.py", line=31, scope="parse", kind="called", at_import=False)`.
    """

    path: str
    line: int
    # Qualified name of the function or class it is in; empty at module level.
    scope: str
    kind: UseKind
    # Runs when the module is imported.
    at_import: bool
    # As written: `core.take`; of a string all of it.
    text: str = ""
    row: Row = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """A name, or attributes of a name, that reaches beyond the function it stands in."""

    use: Use
    # `nx.utils.pairwise` is `("nx", "utils", "pairwise")`.
    chain: tuple[str, ...]
    # The imports inside functions that bind its first name; empty for a global name.
    imports: tuple[Binding, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """What one module binds, imports, exports and mentions."""

    path: str
    definitions: tuple[Definition, ...]
    # Top-level names that are assigned by a plain statement, with its lines.
    constants: dict[str, Span]
    # Statements that choose between imports.
    guards: tuple[Guard, ...]
    # Calls and branches of functions that can go alone.
    arms: tuple[Arm, ...]
    # Names of the module, `*` for star imports, with every binding.
    bindings: dict[str, list[Binding]]
    # Import aliases everywhere in the file, functions included.
    imports: list[Binding]
    # Names in `__all__`.
    exports: set[str]
    mentions: list[Mention]
    # Attribute name -> where it is read or set, whatever the object.
    attributes: dict[str, list[Use]]
    # Name -> strings that are that name, and doctests that contain it.
    words: dict[str, list[Use]]
