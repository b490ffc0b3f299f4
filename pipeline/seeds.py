"""Propose what could be deleted together: names, closed sets of tests, modules, packages."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from pipeline.language.python.layout import module_name
from pipeline.language.python.references import Key, ReferenceIndex
from pipeline.language.python.symbols import Definition, outermost
from pipeline.language.python.usage import holds, uses_of
from pipeline.reach import Bits, Reach

# More names than this are no one feature, unless they are a file or a package.
MAX_SET = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Seed:
    """Definitions that a candidate grows from.

    Example: `Seed(title="toolz.recipes", definitions=(…,), constants=(("a/b.py", "X"),))`.
    """

    # What a person calls it if it becomes no candidate.
    title: str
    definitions: tuple[Definition, ...]
    # Names with a plain assignment.
    constants: tuple[Key, ...] = ()
    # Of whole files and packages: what may go beyond `MAX_SET` names.
    is_whole: bool = False


def propose(index: ReferenceIndex, *, reach: Reach, package: frozenset[str]) -> Iterator[Seed]:
    """Yield seeds, the small ones first; the same names may come more than once."""
    inner = [
        it
        for (path, _), it in sorted(index.definitions.items())
        if path in package and path.endswith(".py")
    ]
    public = [it for it in inner if it.is_public]
    for definition in public:
        yield Seed(title=title_of(definition, index), definitions=(definition,))
    yield from _of_tests(inner, index, reach=reach)
    yield from _of_modules(inner, index, package=package)
    yield from _of_packages(inner, index, package=package)


def title_of(definition: Definition, index: ReferenceIndex) -> str:
    """Return the importable path of a definition."""
    return f"{module_name(index.layout, definition.symbol.path)}.{definition.symbol.qualname}"


def _of_tests(
    definitions: Iterable[Definition], index: ReferenceIndex, *, reach: Reach
) -> Iterator[Seed]:
    """Yield the closed sets of tests and definitions that a definition, or a group of tests, spans.

    For a set of tests T, S(T) is what some of T enter and no other test does; T is closed when it
    is what enters S(T). These are the concepts of the context «test does not enter definition»
    (Ganter and Wille, Formal Concept Analysis, 1999), spanned by one object or one attribute group
    each: all of them would be too many, and few have a name.
    """
    known = [(it, reach.bits_of(it)) for it in definitions]
    known = [(it, bits) for it, bits in known if bits]
    spans = dict.fromkeys([*(bits for _, bits in known), *reach.groups()])
    seen: set[Bits] = set()
    for span in spans:
        inside = [(it, bits) for it, bits in known if not bits & ~span]
        closed = 0
        for _, bits in inside:
            closed |= bits
        if closed in seen:
            continue
        seen.add(closed)
        kept = outermost(it for it, _ in inside)
        is_one = 1 < len(kept) <= MAX_SET and _is_connected([reach.bits_of(it) for it in kept])
        if is_one and _are_linked(kept, index):
            yield Seed(title=_join(kept, index), definitions=kept)
        yield from _of_classes(kept, index)


def _is_connected(sets: list[Bits]) -> bool:
    """Tell whether tests lead from each definition to each other; else they are no one feature."""
    reached, waiting = sets[0], sets[1:]
    while near := [bits for bits in waiting if bits & reached]:
        waiting = [bits for bits in waiting if not bits & reached]
        for bits in near:
            reached |= bits
    return not waiting


def _are_linked(definitions: Sequence[Definition], index: ReferenceIndex) -> bool:
    """Tell whether the code of each module uses that of another, or is used by it.

    Tests that use two things for their own ends do not make them one feature.
    """
    paths = {it.symbol.path for it in definitions}
    linked = {definitions[0].symbol.path}
    links = [(it.symbol.path, user.symbol.path) for it, user in _pairs(definitions, index)]
    while near := {it for pair in links for it in pair if linked.intersection(pair)} - linked:
        linked |= near
    return linked == paths


def _pairs(
    definitions: Sequence[Definition], index: ReferenceIndex
) -> Iterator[tuple[Definition, Definition]]:
    """Yield definitions with those among them that use them."""
    for it in definitions:
        for use in uses_of(it, index):
            yield from ((it, user) for user in definitions if holds(user, use))


def _of_classes(definitions: Iterable[Definition], index: ReferenceIndex) -> Iterator[Seed]:
    """Yield the methods of one class among some definitions: a part of its interface."""
    groups: dict[Key, list[Definition]] = {}
    for it in definitions:
        owner, _, name = it.symbol.qualname.rpartition(".")
        if owner and not (name.startswith("__") and name.endswith("__")):
            groups.setdefault((it.symbol.path, owner), []).append(it)
    for methods in groups.values():
        if 1 < len(methods) <= MAX_SET and any(it.is_public for it in methods):
            yield Seed(title=_join(methods, index), definitions=tuple(methods))


def _of_modules(
    definitions: Iterable[Definition], index: ReferenceIndex, *, package: frozenset[str]
) -> Iterator[Seed]:
    by_path: dict[str, list[Definition]] = {}
    for it in definitions:
        by_path.setdefault(it.symbol.path, []).append(it)
    for path, found in by_path.items():
        if path in package and PurePosixPath(path).stem not in {"__init__", "__main__"}:
            yield _whole(module_name(index.layout, path), [path], found, index)


def _of_packages(
    definitions: Iterable[Definition], index: ReferenceIndex, *, package: frozenset[str]
) -> Iterator[Seed]:
    """Yield the packages below the top ones."""
    kept = list(definitions)
    for path in sorted(package):
        folder = PurePosixPath(path).parent
        if (
            PurePosixPath(path).name != "__init__.py"
            or f"{folder.parent}/__init__.py" not in package
        ):
            continue
        inside = [it for it in kept if PurePosixPath(it.symbol.path).is_relative_to(folder)]
        paths = [it for it in sorted(package) if PurePosixPath(it).is_relative_to(folder)]
        if inside:
            yield _whole(module_name(index.layout, path), paths, inside, index)


def _whole(
    title: str, paths: Iterable[str], definitions: Iterable[Definition], index: ReferenceIndex
) -> Seed:
    constants = [
        (path, name)
        for path in paths
        if path in index.scans
        for name in index.scans[path].constants
        if not (name.startswith("__") and name.endswith("__"))
    ]
    return Seed(
        title=title,
        definitions=outermost(definitions),
        constants=tuple(constants),
        is_whole=True,
    )


def _join(definitions: Iterable[Definition], index: ReferenceIndex) -> str:
    return " + ".join(title_of(it, index) for it in definitions)
