"""Plan a deletion: all that goes with the wanted symbols, or why they cannot go."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pipeline.language.python.bindings import Binding
from pipeline.language.python.closure import Gone, gather, grow, unused_imports
from pipeline.language.python.cut import Cuts, cut
from pipeline.language.python.references import Key, ReferenceIndex
from pipeline.language.python.symbols import Definition
from pipeline.language.python.text import is_valid
from pipeline.language.python.usage import relatives_of, render, uses_of
from pipeline.language.python.uses import Use


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCut:
    """What goes from one file.

    Example: `FileCut(path="a/__init__.py", symbols=(), imports=(…,), exports=("f",), …)`.
    """

    path: str
    # Qualified names of definitions.
    symbols: tuple[str, ...]
    # Top-level names with a plain assignment.
    constants: tuple[str, ...]
    # Imported names, anywhere in the file.
    imports: tuple[Binding, ...]
    # Entries of `__all__`.
    exports: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A deletion, file by file.

    Example: `Plan(files=(FileCut(…),), seams=("a/core.py:_helper",), new_sources=(…,))`.
    """

    # In order of their paths; each can be carried out alone with `edit_file`.
    files: tuple[FileCut, ...]
    # What goes besides the wanted symbols, as `path:name`, sorted.
    seams: tuple[str, ...]
    # Path and new text of each file, in the order of `files`.
    new_sources: tuple[tuple[str, str], ...]


def plan_deletion(
    definitions: Sequence[Definition],
    sources: Mapping[str, str],
    index: ReferenceIndex,
    *,
    is_package_file: Callable[[str], bool],
) -> Plan | str:
    """Decide all that goes with some symbols, or return why they cannot be deleted.

    The answer then is a word of the vocabulary and a detail, such as
    `used_elsewhere: called at src/a/b.py:31 in parse`. Files outside the package keep their uses
    inside functions, which fail as a test should, and lose their imports of what is gone.
    """
    gone = gather(definitions, (), index=index)
    obstacle = _find_obstacle(gone, index, is_package_file=is_package_file)
    if obstacle:
        return obstacle
    gone = grow(gone, index, is_package_file=is_package_file)
    files = _file_cuts(gone, index, is_package_file=is_package_file)
    wanted = {(it.symbol.path, it.symbol.qualname) for it in definitions}
    new_sources = tuple((it.path, _edit(sources[it.path], it)) for it in files)
    for path, text in new_sources:
        if not is_valid(text, path=path):
            return f"does_not_parse: {path} after the deletion"
    return Plan(files=files, seams=_seams(files, wanted=wanted), new_sources=new_sources)


def edit_file(path: str, source: str, plan: Plan) -> str:
    """Carry out a plan in one file; other files are returned as they are."""
    return next((_edit(source, it) for it in plan.files if it.path == path), source)


def _find_obstacle(
    gone: Gone, index: ReferenceIndex, *, is_package_file: Callable[[str], bool]
) -> str:
    qualnames = {f"{it.symbol.path}:{it.symbol.qualname}" for it in gone.definitions}
    for definition in gone.definitions:
        if definition.is_rebound:
            return f"used_elsewhere: bound in another way in {definition.symbol.path}"
        uses = [use for use in uses_of(definition, index) if not gone.covers(use)]
        early = [use for use in uses if use.at_import and use.kind != "string"]
        late = [use for use in uses if is_package_file(use.path)]
        if early or late:
            use = (early or late)[0]
            return f"{'used_at_import' if early else 'used_elsewhere'}: {render(use)}"
        for relative in relatives_of(definition, index):
            if relative not in qualnames:
                return f"used_elsewhere: related to {relative}"
    return ""


def _file_cuts(
    gone: Gone, index: ReferenceIndex, *, is_package_file: Callable[[str], bool]
) -> tuple[FileCut, ...]:
    keys = [(it.symbol.path, it.symbol.qualname) for it in gone.definitions]
    names = [*keys, *gone.constants]
    fetched = [it for key in names for it in index.imports.get(key, ()) if not _covers(gone, it)]
    imports = [*fetched, *unused_imports(gone, index, is_package_file=is_package_file)]
    exports = [export for key in names for export in index.exports.get(key, ())]
    paths = {path for path, _ in (*names, *exports)} | {it.path for it in imports}
    return tuple(
        FileCut(
            path=path,
            symbols=_names_in(path, keys),
            constants=_names_in(path, gone.constants),
            imports=tuple(dict.fromkeys(it for it in imports if it.path == path)),
            exports=_names_in(path, exports),
        )
        for path in sorted(paths)
    )


def _covers(gone: Gone, binding: Binding) -> bool:
    use = Use(path=binding.path, line=binding.line, scope="", kind="read", at_import=False)
    return gone.covers(use)


def _names_in(path: str, keys: Iterable[Key]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for folder, name in keys if folder == path))


def _edit(source: str, file: FileCut) -> str:
    fetched = {_identity(it) for it in file.imports}
    cuts = Cuts(
        symbols=frozenset(file.symbols),
        constants=frozenset(file.constants),
        exports=frozenset(file.exports),
        is_gone_import=lambda binding: _identity(binding) in fetched,
    )
    return cut(source, cuts, path=file.path)


def _identity(binding: Binding) -> tuple[int, str, str, str]:
    return (binding.line, binding.module, binding.target, binding.name)


def _seams(files: Sequence[FileCut], *, wanted: set[Key]) -> tuple[str, ...]:
    return tuple(sorted({f"{file.path}:{name}" for file in files for name in _extra(file, wanted)}))


def _extra(file: FileCut, wanted: set[Key]) -> Iterator[str]:
    yield from (name for name in file.symbols if (file.path, name) not in wanted)
    yield from (*file.constants, *file.exports)
    yield from (binding.name for binding in file.imports)
