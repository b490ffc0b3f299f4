"""Read a Snapshot's Python and pages once for all its candidates, and plan their deletions."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from pipeline.language.python.arms import Arm
from pipeline.language.python.describe import import_paths
from pipeline.language.python.documents import cut_document
from pipeline.language.python.layout import module_name
from pipeline.language.python.option.code import Code, read_code
from pipeline.language.python.option.plan import Tree, plan_option
from pipeline.language.python.references import Key, ReferenceIndex, index_tree
from pipeline.language.python.seams import Besides, Plan, plan_deletion
from pipeline.language.python.sources import decode_documents, decode_sources, package_files
from pipeline.language.python.symbols import Span
from pipeline.language.python.users import Judge
from pipeline.task.record import Feature
from pipeline.task.reject import Reject
from pipeline.task.tree import read_tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """The Python of a Snapshot, read and indexed once for all its candidates."""

    sources: dict[str, str]
    # Pages of documentation by path.
    documents: dict[str, str]
    index: ReferenceIndex
    # Who takes and passes which parameter.
    code: Code

    def package_of(self, feature: Feature) -> frozenset[str]:
        """Return the files of the package that a Feature is in."""
        return package_files(self.sources, traced=(it.path for it in feature.symbols))


@lru_cache(maxsize=4)
def open_library(tree: Path, import_roots: tuple[str, ...]) -> Library:
    """Read and index the Python files of a tree."""
    files = read_tree(tree)
    sources = decode_sources(files)
    return Library(
        sources=sources,
        documents=decode_documents(files),
        index=index_tree(sources, import_roots=import_roots),
        code=read_code(sources),
    )


def plan_feature(feature: Feature, library: Library) -> Plan | Reject:
    """Decide what goes with a Feature's symbols; they are all of the package that does."""
    if feature.option:
        return _plan_option(feature, library)
    is_package_file = library.package_of(feature).__contains__
    definitions = [library.index.definitions[it.path, it.qualname] for it in feature.symbols]
    plan = plan_deletion(
        definitions,
        library.sources,
        library.index,
        is_package_file=is_package_file,
        besides=Besides(
            constants=tuple(_key(it) for it in feature.constants),
            arms=tuple(_arm(it, library.index) for it in feature.arms),
        ),
        # It has grown already.
        judge=Judge(
            is_package_file=is_package_file,
            is_user=lambda _used, _user: False,
            is_test=lambda _owner: True,
            fits=lambda _gone: True,
            is_free=lambda _arm, _owner, _gone: False,
        ),
    )
    if isinstance(plan, str):
        reason, _, detail = plan.partition(": ")
        return Reject(stage="deletion", reason=reason, detail=detail)
    return replace(plan, new_sources=(*plan.new_sources, *_pages(plan, library, is_package_file)))


def _plan_option(feature: Feature, library: Library) -> Plan | Reject:
    tree = Tree(
        sources=library.sources,
        index=library.index,
        code=library.code,
        is_package_file=library.package_of(feature).__contains__,
    )
    owners = [(it.path, it.qualname) for it in feature.symbols]
    option = plan_option(feature.option, owners, tree)
    if isinstance(option, str):
        return Reject(stage="deletion", reason="not_foldable", detail=option)
    return option.plan


def _pages(
    plan: Plan, library: Library, is_package_file: Callable[[str], bool]
) -> Iterator[tuple[str, str]]:
    """Yield the pages of documentation that would not build, and what becomes of them."""
    index = library.index
    gone = {module_name(index.layout, it.path) for it in plan.files if it.is_removed}
    for definition in plan.definitions:
        gone.update(import_paths(definition, index, is_package_file=is_package_file))
    for path, text in library.documents.items():
        changed = cut_document(text, gone)
        if changed != text:
            yield path, changed


def _arm(text: str, index: ReferenceIndex) -> tuple[str, Arm]:
    """Return what `Feature.arms` names: `src/pkg/core.py:12-14`."""
    path, _, lines = text.rpartition(":")
    first, last = map(int, lines.split("-"))
    span = Span(first_line=first, last_line=last)
    return path, next(it for it in index.scans[path].arms if it.span == span)


def _key(constant: str) -> Key:
    path, _, name = constant.rpartition(":")
    return path, name
