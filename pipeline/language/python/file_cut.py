"""Say what goes from one file, and carry it out."""

from dataclasses import dataclass

from pipeline.language.python.arms import Arm
from pipeline.language.python.bindings import Binding
from pipeline.language.python.cut import Cuts, cut
from pipeline.language.python.guards import Guard
from pipeline.language.python.uses import Use


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCut:
    """What goes from one file.

    Example: `FileCut(path="a/__init__.py", symbols=(), imports=(…,), exports=("f",), …)`.
    """

    path: str
    # Qualified names of definitions.
    symbols: tuple[str, ...] = ()
    # Top-level names with a plain assignment.
    constants: tuple[str, ...] = ()
    # Imported names, anywhere in the file.
    imports: tuple[Binding, ...] = ()
    # Statements that choose between imports.
    guards: tuple[Guard, ...] = ()
    # Entries of `__all__`.
    exports: tuple[str, ...] = ()
    # Uses whose element, or whose statement, goes.
    rows: tuple[Use, ...] = ()
    # What goes from functions that stay.
    arms: tuple[Arm, ...] = ()
    # Nothing worth keeping is left: the file goes.
    is_removed: bool = False


def edit(source: str, file: FileCut) -> str:
    """Return the text of a file without what goes.

    Raises:
        ValueError: the file does not parse.
    """
    fetched = {_identity(it) for it in file.imports}
    cuts = Cuts(
        symbols=frozenset(file.symbols),
        constants=frozenset(file.constants),
        exports=frozenset(file.exports),
        statements=frozenset(it.line for it in file.rows if it.row == "statement"),
        guards=frozenset(it.span.first_line for it in file.guards),
        elements=frozenset((it.line, it.text) for it in file.rows if it.row == "element"),
        arms=frozenset(file.arms),
        is_gone_import=lambda binding: _identity(binding) in fetched,
    )
    return cut(source, cuts, path=file.path)


def _identity(binding: Binding) -> tuple[int, str, str, str, str]:
    return (binding.line, binding.module, binding.target, binding.name, binding.loaded)
