"""Remove the files of which a deletion leaves no definition, and the imports of those."""

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from pipeline.language.python.bindings import DEFINITIONS, Binding, assigned_name
from pipeline.language.python.closure import Gone
from pipeline.language.python.file_cut import FileCut, edit
from pipeline.language.python.layout import find_module
from pipeline.language.python.references import ReferenceIndex, find_target
from pipeline.language.python.text import parse


def with_removed(
    files: Sequence[FileCut],
    gone: Gone,
    sources: Mapping[str, str],
    index: ReferenceIndex,
    *,
    is_package_file: Callable[[str], bool],
) -> tuple[FileCut, ...]:
    """Let hollow modules go, with their stubs, and every import of them."""
    removed = {
        it.path
        for it in files
        if is_package_file(it.path)
        and it.symbols
        and PurePosixPath(it.path).stem != "__init__"
        and _is_hollow(edit(sources[it.path], it))
        and _is_free(it.path, gone, index, is_package_file=is_package_file)
    }
    removed |= {
        it.path
        for it in files
        if _is_left_alone(it.path, removed, index, is_package_file=is_package_file)
        and _is_hollow(edit(sources[it.path], it))
        and _is_free(it.path, gone, index, is_package_file=_outside(it.path, is_package_file))
    }
    by_path = {it.path: it for it in files}
    for path in removed | {f"{it}i" for it in removed if f"{it}i" in sources}:
        by_path[path] = replace(by_path.get(path, FileCut(path=path)), is_removed=True)
    for binding in _loads_of(removed, index):
        file = by_path.get(binding.path, FileCut(path=binding.path))
        if not file.is_removed and not _is_within(binding, gone):
            imports = tuple(dict.fromkeys((*file.imports, binding)))
            by_path[binding.path] = replace(file, imports=imports)
    for export in (it for path in removed for it in index.exports.get((path, ""), ())):
        file = by_path.get(export[0], FileCut(path=export[0]))
        by_path[export[0]] = replace(file, exports=(*file.exports, export[1]))
    return tuple(by_path[path] for path in sorted(by_path))


def _is_left_alone(
    path: str,
    removed: set[str],
    index: ReferenceIndex,
    *,
    is_package_file: Callable[[str], bool],
) -> bool:
    """Tell whether a file is the initialiser of a package that loses everything else."""
    folder = PurePosixPath(path).parent
    inside = {
        it
        for it in index.scans
        if is_package_file(it) and it.endswith(".py") and PurePosixPath(it).is_relative_to(folder)
    }
    return PurePosixPath(path).name == "__init__.py" and inside - removed == {path} != inside


def _outside(path: str, is_package_file: Callable[[str], bool]) -> Callable[[str], bool]:
    """Tell package files that do not go with the package of an initialiser."""
    folder = PurePosixPath(path).parent
    return lambda it: is_package_file(it) and not PurePosixPath(it).is_relative_to(folder)


def _is_hollow(text: str) -> bool:
    """Tell whether a module has nothing to offer any more; its own private names do not count."""
    tree = parse(text)
    return tree is not None and not any(map(_is_offered, tree.body))


def _is_offered(node: ast.stmt) -> bool:
    name = assigned_name(node)
    # Of what only type checkers read nothing is offered.
    is_public = bool(name) and not name.startswith("_") and name != "TYPE_CHECKING"
    return isinstance(node, DEFINITIONS) or is_public


def _is_free(
    path: str, gone: Gone, index: ReferenceIndex, *, is_package_file: Callable[[str], bool]
) -> bool:
    """Tell whether nothing that stays needs the module itself, or what it had imported."""
    uses = index.uses.get((path, ""), ())
    if not all(gone.covers(use) or not is_package_file(use.path) for use in uses):
        return False
    for binding in _loads_of({path}, index):
        takes = is_package_file(binding.path) and binding.target not in {"", "*"}
        is_module = find_module(index.layout, binding.module, importer=binding.path) != path
        goes = _is_within(binding, gone) or _fetches_gone(binding, gone, index)
        if takes and not is_module and not goes:
            return False
        # `import a.b` binds `a`, which may be used for more.
        if (
            not binding.target
            and binding.name != binding.loaded
            and _has_other_uses(binding, path, index)
        ):
            return False
    return True


def _fetches_gone(binding: Binding, gone: Gone, index: ReferenceIndex) -> bool:
    """Tell whether an import goes already, for what it fetches."""
    keys = {(it.symbol.path, it.symbol.qualname) for it in gone.definitions} | set(gone.constants)
    return not keys.isdisjoint(find_target(index, binding))


def _has_other_uses(binding: Binding, path: str, index: ReferenceIndex) -> bool:
    scanned = index.scans[binding.path]
    through = {(use.line, use.text) for use in index.uses.get((path, ""), ())}
    return any(
        mention.chain[0] == binding.name and (mention.use.line, mention.use.text) not in through
        for mention in scanned.mentions
    )


def _loads_of(paths: Iterable[str], index: ReferenceIndex) -> Iterator[Binding]:
    """Yield the imports, in whatever file, that load one of some modules or take from it."""
    wanted = set(paths)
    for scanned in index.scans.values() if wanted else ():
        for binding in scanned.imports:
            if _loaded(binding, index) & wanted:
                yield binding


def _loaded(binding: Binding, index: ReferenceIndex) -> set[str]:
    """Return the module of an import; of `from a import b`, also that of `a.b`."""
    module = find_module(index.layout, binding.loaded, importer=binding.path)
    if not binding.target or binding.target == "*":
        return {module}
    inner = f"{binding.loaded.rstrip('.')}.{binding.target}"
    if not binding.loaded.strip("."):
        inner = f"{binding.loaded}{binding.target}"
    return {module, find_module(index.layout, inner, importer=binding.path)}


def _is_within(binding: Binding, gone: Gone) -> bool:
    spans = gone.spans.get(binding.path, ())
    return any(span.first_line <= binding.line <= span.last_line for span in spans)
