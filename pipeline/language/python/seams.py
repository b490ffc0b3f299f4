"""Plan a deletion: all that goes with the wanted symbols, or why they cannot go."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pipeline.language.python.arms import Arm
from pipeline.language.python.bindings import Binding
from pipeline.language.python.closure import Gone, gather, grow
from pipeline.language.python.file_cut import FileCut, edit
from pipeline.language.python.references import Key, ReferenceIndex
from pipeline.language.python.removal import with_removed
from pipeline.language.python.symbols import Definition, outermost
from pipeline.language.python.text import is_valid
from pipeline.language.python.tidy import tidy
from pipeline.language.python.usage import relatives_of, render, uses_of
from pipeline.language.python.users import Judge, include_users
from pipeline.language.python.uses import Use


@dataclass(frozen=True, slots=True, kw_only=True)
class Besides:
    """What is wanted besides definitions."""

    # Names with a plain assignment.
    constants: tuple[Key, ...] = ()
    # Parts of functions that stay, by path.
    arms: tuple[tuple[str, Arm], ...] = ()


NOTHING = Besides()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A deletion, file by file.

    Example: `Plan(files=(FileCut(…),), seams=("a/core.py:_helper",), new_sources=(…,), …)`.
    """

    # In order of their paths; each can be carried out alone with `edit_file`.
    files: tuple[FileCut, ...]
    # What goes besides the wanted symbols, as `path:name`, sorted; a path alone is a file.
    seams: tuple[str, ...]
    # Path and new text of each file that stays, in the order of `files`.
    new_sources: tuple[tuple[str, str], ...]
    # All definitions that go, the wanted ones first; no method of a class that goes. Without an
    # option stay those that lose it.
    definitions: tuple[Definition, ...] = ()
    # The option that goes, and what the docstrings say of it.
    option: str = ""
    option_docs: tuple[str, ...] = ()


def plan_deletion(
    definitions: Sequence[Definition],
    sources: Mapping[str, str],
    index: ReferenceIndex,
    *,
    is_package_file: Callable[[str], bool],
    besides: Besides = NOTHING,
    judge: Judge | None = None,
) -> Plan | str:
    """Decide all that goes with some symbols, or return why they cannot be deleted.

    The answer then is a word of the vocabulary and a detail, such as
    `used_elsewhere: called at src/a/b.py:31 in parse`. Files outside the package keep their uses
    inside functions, which fail as a test should, and lose their imports of what is gone.

    Args:
        definitions: the wanted ones.
        sources: text by path.
        index: of the sources.
        is_package_file: tells the code under test from its tests.
        besides: what else is wanted.
        judge: lets the deletion grow by its users; without one a user is an obstacle.
    """
    gone = close_deletion(
        definitions,
        index,
        is_package_file=is_package_file,
        besides=besides,
        judge=judge,
    )
    if isinstance(gone, str):
        return gone
    files = cut_files(gone, sources, index, is_package_file=is_package_file)
    files, new_sources = tidy(files, gone, sources, index, is_package_file=is_package_file)
    for path, text in new_sources:
        if not is_valid(text, path=path):
            return f"does_not_parse: {path} after the deletion"
    wanted = {(it.symbol.path, it.symbol.qualname) for it in definitions}
    return Plan(
        files=files,
        seams=_seams(files, wanted=wanted),
        new_sources=new_sources,
        definitions=going(gone, is_package_file=is_package_file),
    )


def close_deletion(
    definitions: Sequence[Definition],
    index: ReferenceIndex,
    *,
    is_package_file: Callable[[str], bool],
    besides: Besides = NOTHING,
    judge: Judge | None = None,
) -> Gone | str:
    """Return all code that goes with some symbols, or why they cannot go; see `plan_deletion`."""
    gone = gather(definitions, besides.constants, index=index, arms=besides.arms)
    if judge is not None:
        grown = include_users(gone, index, judge=judge)
        if isinstance(grown, str):
            return grown
        gone = grown
    obstacle = _find_obstacle(gone, index, is_package_file=is_package_file, judge=judge)
    return obstacle or grow(gone, index, is_package_file=is_package_file)


def cut_files(
    gone: Gone,
    sources: Mapping[str, str],
    index: ReferenceIndex,
    *,
    is_package_file: Callable[[str], bool],
) -> tuple[FileCut, ...]:
    """Return what goes from each file, and which files go."""
    files = _file_cuts(gone, index)
    return with_removed(files, gone, sources, index, is_package_file=is_package_file)


def edit_file(path: str, source: str, plan: Plan) -> str:
    """Carry out a plan in one file that stays; other files are returned as they are."""
    return next((edit(source, it) for it in plan.files if it.path == path), source)


def _find_obstacle(
    gone: Gone,
    index: ReferenceIndex,
    *,
    is_package_file: Callable[[str], bool],
    judge: Judge | None,
) -> str:
    qualnames = {f"{it.symbol.path}:{it.symbol.qualname}" for it in gone.definitions}
    for definition in gone.definitions:
        if definition.is_rebound:
            return f"used_elsewhere: bound in another way in {definition.symbol.path}"
        uses = [use for use in uses_of(definition, index) if not gone.covers(use)]
        early = [use for use in uses if use.at_import and use.kind != "string"]
        # What may still use it then are namesakes of methods, and strings.
        late = [use for use in uses if judge is None and is_package_file(use.path)]
        if early or late:
            use = (early or late)[0]
            return f"{'used_at_import' if early else 'used_elsewhere'}: {render(use)}"
        for relative in relatives_of(definition, index):
            if relative not in qualnames and not _is_of_gone_class(definition, gone):
                return f"used_elsewhere: related to {relative}"
    for key in gone.constants:
        early = [it for it in index.uses.get(key, ()) if it.at_import and not gone.covers(it)]
        if early:
            return f"used_at_import: {render(early[0])}"
    return ""


def _is_of_gone_class(definition: Definition, gone: Gone) -> bool:
    owner = definition.symbol.qualname.rpartition(".")[0]
    return any(
        (it.symbol.path, it.symbol.qualname) == (definition.symbol.path, owner)
        for it in gone.definitions
    )


def going(gone: Gone, *, is_package_file: Callable[[str], bool]) -> tuple[Definition, ...]:
    """Return the package's definitions that go, stubs and methods of a class that goes left out."""
    modules = (it for it in gone.definitions if not it.symbol.path.endswith(".pyi"))
    return outermost(it for it in modules if is_package_file(it.symbol.path))


def _file_cuts(gone: Gone, index: ReferenceIndex) -> tuple[FileCut, ...]:
    keys = [(it.symbol.path, it.symbol.qualname) for it in gone.definitions]
    names = [*keys, *gone.constants]
    imports = [it for key in names for it in index.imports.get(key, ()) if not _covers(gone, it)]
    exports = [export for key in names for export in index.exports.get(key, ())]
    paths = {path for path, _ in (*names, *exports)}
    paths |= {it.path for it in imports} | {it.path for it in gone.rows}
    paths |= {path for path, _ in gone.arms}
    return tuple(
        FileCut(
            path=path,
            symbols=_names_in(path, keys),
            constants=_names_in(path, gone.constants),
            imports=tuple(dict.fromkeys(it for it in imports if it.path == path)),
            exports=_names_in(path, exports),
            rows=tuple(sorted((it for it in gone.rows if it.path == path), key=_place)),
            arms=tuple(sorted((it for place, it in gone.arms if place == path), key=_first_line)),
        )
        for path in sorted(paths)
    )


def _place(use: Use) -> tuple[int, str]:
    return use.line, use.text


def _first_line(arm: Arm) -> int:
    return arm.span.first_line


def _covers(gone: Gone, binding: Binding) -> bool:
    use = Use(path=binding.path, line=binding.line, scope="", kind="read", at_import=False)
    return gone.covers(use)


def _names_in(path: str, keys: Iterable[Key]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for folder, name in keys if folder == path))


def _seams(files: Sequence[FileCut], *, wanted: set[Key]) -> tuple[str, ...]:
    removed = {file.path for file in files if file.is_removed}
    names = {f"{file.path}:{name}" for file in files for name in _extra(file, wanted)}
    return tuple(sorted(names | removed))


def _extra(file: FileCut, wanted: set[Key]) -> Iterator[str]:
    yield from (name for name in file.symbols if (file.path, name) not in wanted)
    yield from (*file.constants, *file.exports)
    yield from (binding.name for binding in file.imports)
    yield from (name for guard in file.guards for name in sorted(guard.names))
    yield from (use.text for use in file.rows)
