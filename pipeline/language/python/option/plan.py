"""Plan the removal of an option from a tree, or say why that is not sure to be right."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pipeline.language.python.bindings import Binding
from pipeline.language.python.closure import gather, grow
from pipeline.language.python.cut import Cuts, cut
from pipeline.language.python.file_cut import FileCut, edit
from pipeline.language.python.lint import name_import, new_findings
from pipeline.language.python.option.check import refuse_result
from pipeline.language.python.option.code import (
    Code,
    FunctionNode,
    argument_of,
    last_name,
    read_code,
)
from pipeline.language.python.option.flags import lay_flag
from pipeline.language.python.option.fold import Folded, fold
from pipeline.language.python.option.scope import OptionScope, lay_scope
from pipeline.language.python.references import Key, ReferenceIndex
from pipeline.language.python.seams import Plan
from pipeline.language.python.symbols import Definition, Span, nodes_named
from pipeline.language.python.text import is_valid, parse


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionPlan:
    """A tree without an option."""

    plan: Plan
    scope: OptionScope
    # Path -> lines that only another value than the default reaches.
    branches: Mapping[str, tuple[Span, ...]]
    num_folds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """What is known of a tree's code."""

    sources: Mapping[str, str]
    index: ReferenceIndex
    code: Code
    is_package_file: Callable[[str], bool]


def plan_option(name: str, owners: Sequence[Key], tree: Tree) -> OptionPlan | str:
    """Decide what becomes of a tree without a parameter of some functions.

    A parameter goes from their signatures, its default takes the place of its reads, and what
    only another value reaches goes, with the private helpers and the imports that are then unused.
    The answer is a line of text when something cannot be folded.

    Args:
        name: of the parameter, or of a flag with its dashes.
        owners: functions that take it, the main one first; all have the same default. Of a flag
            the one that adds it to a parser.
        tree: that they are in.
    """
    scope = _lay(name, owners, tree)
    if isinstance(scope, str):
        return scope
    folded: dict[str, Folded] = {}
    for path, option in scope.files.items():
        result = fold(tree.sources[path], option)
        if isinstance(result, str) or parse(result.text) is None:
            return f"{path}: {result if isinstance(result, str) else 'does not parse without it'}"
        folded[path] = result
    wrong = _refuse(scope, folded, tree)
    if wrong:
        return wrong
    plan = _with_helpers(scope, folded, tree)
    broken = [path for path, text in plan.new_sources if not is_valid(text, path=path)]
    if broken:
        return f"{broken[0]} does not parse without it"
    return OptionPlan(
        plan=plan,
        scope=scope,
        branches={path: it.branches for path, it in folded.items()},
        num_folds=sum(it.num_folds for it in folded.values()),
    )


def _lay(name: str, owners: Sequence[Key], tree: Tree) -> OptionScope | str:
    is_package_file = tree.is_package_file
    if not name.startswith("-"):
        return lay_scope(name, owners, tree.code, tree.index, is_package_file=is_package_file)
    return lay_flag(
        name, owners[0], tree.code, tree.index, tree.sources, is_package_file=is_package_file
    )


def _refuse(scope: OptionScope, folded: Mapping[str, Folded], tree: Tree) -> str:
    """Return what is wrong with folded modules; empty when nothing is."""
    for path, result in folded.items():
        findings = new_findings(tree.sources[path], result.text, path=path)
        undefined = [it.name for it in findings if it.kind == "undefined name"]
        if undefined:
            return f"{path} would read {undefined[0]}, which is never set"
        for one, other, name in _pairs(path, result, scope, tree):
            if wrong := refuse_result(one, other, name):
                return wrong
    return _refuse_calls(scope, read_code({path: it.text for path, it in folded.items()}), tree)


def _pairs(
    path: str, result: Folded, scope: OptionScope, tree: Tree
) -> Iterator[tuple[FunctionNode, FunctionNode, str]]:
    """Yield functions before and after, with the name of the parameter that they lose."""
    before, after = parse(tree.sources[path]), parse(result.text)
    assert before is not None
    assert after is not None
    for qualname in sorted(scope.files[path].busy):
        name = scope.name if qualname in scope.files[path].owners else ""
        pairs = zip(nodes_named(before, qualname), nodes_named(after, qualname), strict=True)
        for one, other in pairs:
            if isinstance(one, FunctionNode) and isinstance(other, FunctionNode):
                yield one, other, name


def _refuse_calls(scope: OptionScope, left: Code, tree: Tree) -> str:
    """Return a call in folded modules that passes the option; empty when there is none."""
    for passed in (it for calls in left.calls.values() for it in calls):
        place = f"{passed.path}:{passed.line}"
        is_ours = scope.is_called(passed)
        values = [*passed.node.args, *(it.value for it in passed.node.keywords)]
        is_handed_on = any(last_name(it) in scope.places for it in values)
        numbers = scope.places_in(passed) if is_ours else {None} if is_handed_on else set()
        if any(argument_of(passed.node, scope.name, place=it) is not None for it in numbers):
            return f"another value is passed at {place}"
        if is_ours and any(it.arg is None for it in passed.node.keywords):
            strings = tree.index.words.get(scope.name, ())
            spots = {(it.path, it.scope) for it in strings if it.kind == "string"}
            if (passed.path, passed.scope) in spots:
                return f"it may be passed at {place}"
    return ""


def _with_helpers(scope: OptionScope, folded: Mapping[str, Folded], tree: Tree) -> Plan:
    """Let go what only the folded code used."""
    index = tree.index
    owners = [index.definitions[key] for key in scope.owners]
    pieces = [it for path, result in folded.items() for it in _pieces(path, result, scope, index)]
    gone = grow(gather(pieces, (), index=index), index, is_package_file=tree.is_package_file)
    helpers = [it for it in gone.definitions if it not in pieces]
    paths = {it.symbol.path for it in helpers} | {path for path, _ in gone.constants}
    files, new_sources = [], []
    for path in sorted({*folded, *paths}):
        file = FileCut(
            path=path,
            symbols=tuple(it.symbol.qualname for it in helpers if it.symbol.path == path),
            constants=tuple(name for where, name in gone.constants if where == path),
        )
        before = tree.sources[path]
        text = edit(folded[path].text if path in folded else before, file)
        unused = _unused_imports(path, before, text, index)
        names = frozenset(it.name for it in unused)
        files.append(replace(file, imports=unused))
        new_sources.append((path, _without_imports(text, names) if names else text))
    said = (it for result in folded.values() for it in result.docs)
    return Plan(
        files=tuple(files),
        seams=tuple(sorted(_seams(files))),
        new_sources=tuple(new_sources),
        definitions=tuple(owners),
        option=scope.name,
        option_docs=tuple(dict.fromkeys((*scope.docs, *said))),
    )


def _pieces(
    path: str, result: Folded, scope: OptionScope, index: ReferenceIndex
) -> Iterator[Definition]:
    """Yield dropped lines as if they were a definition beside each class that they may be of."""
    option = scope.files[path]
    owner = index.definitions[scope.owners[0]]
    names = {f"{name.partition('.')[0]}.()" if "." in name else "()" for name in option.busy}
    for name in sorted(names) if result.dropped else ():
        symbol = replace(owner.symbol, path=path, qualname=name)
        yield replace(owner, symbol=symbol, spans=result.dropped, decorators=(), members=())


def _unused_imports(
    path: str, before: str, after: str, index: ReferenceIndex
) -> tuple[Binding, ...]:
    """Return the imports of a module that nothing needs any more, and nobody takes from it."""
    findings = new_findings(before, after, path=path)
    unused = {it.name for it in findings if it.kind == "unused import"}
    if not unused or path.endswith("__init__.py"):
        return ()
    return tuple(
        it
        for it in index.scans[path].imports
        if not it.scope
        and name_import(it) in unused
        and (path, it.name) not in index.imports
        and (path, it.name) not in index.exports
        and it.name not in index.words
    )


def _without_imports(text: str, names: frozenset[str]) -> str:
    return cut(text, Cuts(is_gone_import=lambda it: it.name in names and not it.scope))


def _seams(files: Sequence[FileCut]) -> Iterator[str]:
    for file in files:
        yield from (f"{file.path}:{name}" for name in (*file.symbols, *file.constants))
        yield from (f"{file.path}:{it.name}" for it in file.imports)
