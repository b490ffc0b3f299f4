"""Find the options of a tree: parameters that tests pass, with all functions that share them."""

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pipeline.language.python.option.check import refuse_function
from pipeline.language.python.option.code import (
    CONSTRUCTORS,
    FunctionNode,
    Passed,
    Taken,
    argument_of,
)
from pipeline.language.python.option.flags import flags_in
from pipeline.language.python.option.plan import OptionPlan, Tree, plan_option
from pipeline.language.python.option.scope import called_by, is_constructor
from pipeline.language.python.option.value import Known, Named, read_default
from pipeline.language.python.references import Key
from pipeline.language.python.symbols import nodes_named
from pipeline.language.python.text import parse
from pipeline.language.python.usage import relatives_of

# Functions that share an option; more are the way of a whole library.
MAX_OWNERS = 8
# Parameters that are folded to see whether they can be, of one tree: each takes part of a second.
MAX_PLANNED = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundOption:
    """A parameter that tests pass.

    Example: `FoundOption(name="strict", owners=(("a/b.py", "loads"),), calls=(…,), plan=…)`.
    """

    name: str
    # Functions that share it, the one that tests call first.
    owners: tuple[Key, ...]
    # Calls in test code that pass it.
    calls: tuple[Passed, ...]
    # Test code that passes it, as far as that is in functions.
    users: tuple[Key, ...]
    # The tree without it, or why it cannot go.
    plan: OptionPlan | str


def find_options(
    tree: Tree, *, refuse: Callable[[Key, Sequence[Key]], str] = lambda _owner, _users: ""
) -> Iterator[FoundOption]:
    """Yield the options of commands, and of public functions and constructors, each once.

    Of the latter those come first that most tests pass, and only so many are looked at.

    Args:
        tree: its code.
        refuse: says of a function and the test code that passes a parameter, both by path and
            qualified name, why that is not worth a plan; else empty.
    """
    yield from _find_flags(tree)
    seen: set[tuple[str, frozenset[Key]]] = set()
    num_planned = 0
    for name, start, calls in _starts(tree):
        if any(start.key in owners for other, owners in seen if other == name):
            continue
        users = tuple((it.path, it.scope) for it in calls)
        default = read_default(start.default)
        why = "" if default else f"its default is no constant: {start.default}"
        why = why or refuse(start.key, users)
        if default is None or why:
            yield FoundOption(name=name, owners=(start.key,), calls=calls, users=users, plan=why)
            continue
        if num_planned == MAX_PLANNED:
            return
        num_planned += 1
        owners, plan = _planned(name, start, tree, default=default)
        seen.add((name, frozenset(owners)))
        yield FoundOption(name=name, owners=owners, calls=calls, users=users, plan=plan)


def _starts(tree: Tree) -> list[tuple[str, Taken, tuple[Passed, ...]]]:
    """Return the parameters to which tests pass other values, those first that most calls name."""
    found = [
        (name, it, tuple(_test_calls(name, it, tree)))
        for name, takers in tree.code.taken.items()
        for it in takers
        if not name.startswith("_") and _is_public(it.key, tree)
    ]
    passed = [it for it in found if any(_differs(it[0], it[1], call) for call in it[2])]
    return sorted(passed, key=lambda it: (-len(it[2]), it[0], it[1].key))


def _find_flags(tree: Tree) -> Iterator[FoundOption]:
    """Yield the flags that tests name."""
    for flag in flags_in(tree.code, is_package_file=tree.is_package_file):
        named = sorted(tree.code.flags.get(flag.name, ()))
        users = tuple(it for it in named if not tree.is_package_file(it[0]))
        if users and flag.owner in tree.index.definitions:
            owners = (flag.owner,)
            plan = plan_option(flag.name, owners, tree)
            yield FoundOption(name=flag.name, owners=owners, calls=(), users=users, plan=plan)


def _is_public(key: Key, tree: Tree) -> bool:
    path, qualname = key
    definition = tree.index.definitions.get(key)
    if definition is None or not tree.is_package_file(path) or not path.endswith(".py"):
        return False
    if is_constructor(qualname):
        owner = tree.index.definitions.get((path, qualname.rpartition(".")[0]))
        return owner is not None and owner.is_public
    return definition.is_public


def _test_calls(name: str, taken: Taken, tree: Tree) -> Iterator[Passed]:
    for passed in tree.code.calls.get(called_by(taken.key), ()):
        is_test = not tree.is_package_file(passed.path)
        if is_test and argument_of(passed.node, name, place=taken.place) is not None:
            yield passed


def _differs(name: str, taken: Taken, passed: Passed) -> bool:
    """Tell whether a call passes another value than the default."""
    value = argument_of(passed.node, name, place=taken.place)
    return value is not None and ast.unparse(value) != taken.default


def _planned(
    name: str, start: Taken, tree: Tree, *, default: Known
) -> tuple[tuple[Key, ...], OptionPlan | str]:
    """Take the parameter out of all that share it; if that fails, of as few as will do."""
    tried: list[tuple[Key, ...]] = []
    plan: OptionPlan | str = ""
    for is_deep in (True, False):
        owners = tuple(_grown(name, start, tree, is_deep=is_deep))
        if owners in tried:
            break
        tried.append(owners)
        named = default.value.text if isinstance(default.value, Named) else ""
        plan = _refuse(name, owners, tree, named=named) or plan_option(name, owners, tree)
        if not isinstance(plan, str):
            break
    return tried[-1], plan


def _grown(name: str, start: Taken, tree: Tree, *, is_deep: bool) -> list[Key]:
    """Return the functions that hand the parameter on to the first, and those that get it."""
    takers = {it.key: it for it in tree.code.taken[name] if tree.is_package_file(it.key[0])}
    same = {key for key, it in takers.items() if it.default == start.default}
    owners = [start.key]
    for key in owners:
        near = [*_callers(name, takers[key], tree), *_relatives(key, tree)]
        if is_deep:
            near += _receivers(name, key, takers, tree)
        owners += [it for it in dict.fromkeys(near) if it in same and it not in owners]
    return owners


def _callers(name: str, taken: Taken, tree: Tree) -> Iterator[Key]:
    """Yield the functions of the package that hand their own parameter to one."""
    called = called_by(taken.key)
    for passed in (*tree.code.calls.get(called, ()), *tree.code.calls.get("__init__", ())):
        value = argument_of(passed.node, name, place=taken.place)
        if isinstance(value, ast.Name) and value.id == name and tree.is_package_file(passed.path):
            is_super = passed.callee == "__init__" and called != "__init__"
            parents = tree.index.parents.get((passed.path, passed.scope.partition(".")[0]), ())
            if not is_super or (taken.key[0], called) in parents:
                yield passed.path, passed.scope


def _receivers(name: str, key: Key, takers: dict[Key, Taken], tree: Tree) -> Iterator[Key]:
    """Yield the functions that one hands its parameter to, where there is no doubt which."""
    path, qualname = key
    parents = tree.index.parents.get((path, qualname.partition(".")[0]), frozenset())
    for passed in tree.code.calls_in.get(key, ()):
        named = [it for it in takers if called_by(it) == passed.callee]
        if passed.callee == "__init__":
            named = [(where, f"{parent}.__init__") for where, parent in parents]
        known = [takers[it] for it in named if it in takers]
        if len(known) == 1:
            value = argument_of(passed.node, name, place=known[0].place)
            if isinstance(value, ast.Name) and value.id == name:
                yield known[0].key


def _relatives(key: Key, tree: Tree) -> Iterator[Key]:
    """Yield the methods that one overrides or is overridden by; of a constructor, its twin."""
    definition = tree.index.definitions.get(key)
    if definition is None or is_constructor(key[1]):
        owner = key[1].rpartition(".")[0]
        yield from ((key[0], f"{owner}.{name}") for name in CONSTRUCTORS if definition)
        return
    for relative in relatives_of(definition, tree.index):
        path, _, qualname = relative.partition(":")
        yield path, qualname


def _refuse(name: str, owners: Sequence[Key], tree: Tree, *, named: str) -> str:
    """Return why a parameter cannot be folded in some functions; empty when it can."""
    if len(owners) > MAX_OWNERS:
        return f"{len(owners)} functions share it"
    for key in owners:
        path, qualname = key
        if key not in tree.index.definitions:
            return f"{qualname} is no function of its own"
        outside = [it for it in _relatives(key, tree) if not it[0].endswith((".py", ".pyi"))]
        if outside:
            return f"{qualname} overrides {outside[0][1]}"
        module = parse(tree.sources[path])
        assert module is not None
        for node in nodes_named(module, qualname):
            if not isinstance(node, FunctionNode):
                return f"{qualname} is no function"
            if why := refuse_function(node, name, named=named):
                return why
    return ""
