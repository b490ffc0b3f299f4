"""Grow a deletion by what uses the deleted code: callers, registrations, aliases."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pipeline.language.python.arms import Arm, innermost
from pipeline.language.python.closure import Gone, gather
from pipeline.language.python.references import Key, ReferenceIndex
from pipeline.language.python.symbols import Definition
from pipeline.language.python.usage import holds, relatives_of, render, uses_of
from pipeline.language.python.uses import Use


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """What growing cannot tell from the code alone."""

    is_package_file: Callable[[str], bool]
    # Whether an attribute of a deleted method's name is that method, as far as tests have shown.
    is_user: Callable[[Definition, Definition], bool]
    # Whether a definition of the test files is a test, or holds some.
    is_test: Callable[[Definition], bool]
    # Whether a deletion may still grow.
    fits: Callable[[Gone], bool]
    # Whether an arm goes and its function stays: the tests of a deletion alone run the arm, and
    # others the function.
    is_free: Callable[[Arm, Definition, Gone], bool]


def include_users(gone: Gone, index: ReferenceIndex, *, judge: Judge) -> Gone | str:
    """Add all package code that needs what is gone; or say in one line why that cannot go.

    A function or class that uses it goes as a whole, or only the branch that does so when nothing
    else runs that. Of a list or dictionary made at import only the element goes, of a registration
    the statement. Constants made from it go with their users. Of tests goes what could not even be
    imported; inside functions they fail as they should.
    """
    while True:
        grown = _step(gone, index, judge=judge)
        if isinstance(grown, str):
            return grown
        if grown == gone:
            return gone
        if not judge.fits(grown):
            return f"used_elsewhere: {_first_user(gone, index, judge=judge)}, and so on"
        gone = grown


def _step(gone: Gone, index: ReferenceIndex, *, judge: Judge) -> Gone | str:
    """Add the users of what is gone so far, but not yet theirs."""
    definitions, constants = list(gone.definitions), list(gone.constants)
    rows, arms = set(gone.rows), set(gone.arms)
    for use, owner in _owned(gone, index, judge=judge):
        if use.row and not (judge.is_package_file(use.path) and isinstance(owner, Definition)):
            rows.add(use)
        elif isinstance(owner, Definition):
            user = _user(use, owner, gone, index, judge=judge)
            if isinstance(user, str):
                return user
            if isinstance(user, Arm):
                arms.add((use.path, user))
            else:
                definitions.append(user)
        elif owner is not None:
            constants.append(owner)
        else:
            return f"used_at_import: {render(use)}"
    return gather(definitions, constants, index=index, rows=rows, arms=arms)


def _owned(
    gone: Gone, index: ReferenceIndex, *, judge: Judge
) -> Iterator[tuple[Use, Definition | Key | None]]:
    """Yield the uses that are outstanding with what they stand in; namesakes left out."""
    for use, used in _outstanding(gone, index, judge=judge):
        owner = owner_of(use, index)
        if (
            used is None
            or use.at_import
            or not isinstance(owner, Definition)
            or judge.is_user(used, owner)
        ):
            yield use, owner


def _user(
    use: Use, owner: Definition, gone: Gone, index: ReferenceIndex, *, judge: Judge
) -> Definition | Arm | str:
    """Return what goes with a use in a definition: all of that or a part; or why neither can."""
    is_test = not judge.is_package_file(use.path)
    if not is_test and not use.at_import:
        arm = innermost(index.scans[use.path].arms, use.line)
        if arm is not None and judge.is_free(arm, owner, gone):
            return arm
    whole = owner if is_test else _whole(owner, index)
    if whole.is_rebound:
        return f"used_elsewhere: {render(use)}"
    if is_test and not judge.is_test(owner):
        return f"used_at_import: {render(use)}"
    return whole


def _outstanding(
    gone: Gone, index: ReferenceIndex, *, judge: Judge
) -> Iterator[tuple[Use, Definition | None]]:
    """Yield the uses by package code that stays, and those by tests as they are imported.

    Each comes with what is used; with nothing for a constant, which has no namesakes.
    """
    named = [(use, it.symbol.path, it) for it in gone.definitions for use in uses_of(it, index)]
    plain = [(use, key[0], None) for key in gone.constants for use in index.uses.get(key, ())]
    for use, path, used in (*named, *plain):
        # What tests define is nobody's but theirs.
        is_needed = use.at_import or (
            judge.is_package_file(use.path) and judge.is_package_file(path)
        )
        if is_needed and use.kind != "string" and not gone.covers(use):
            yield use, used


def owner_of(use: Use, index: ReferenceIndex) -> Definition | Key | None:
    """Return the smallest definition that a use stands in, or the constant it helps to make."""
    scanned = index.scans[use.path]
    around = [it for it in scanned.definitions if holds(it, use)]
    if around:
        inner = max(around, key=lambda it: it.symbol.qualname.count("."))
        is_plain = inner.symbol.kind == "class" and use.row and use.at_import
        return None if is_plain else inner
    spans = scanned.constants.items()
    return next(
        ((use.path, name) for name, it in spans if it.first_line <= use.line <= it.last_line), None
    )


def _whole(definition: Definition, index: ReferenceIndex) -> Definition:
    """Return what has to go for a definition to go: of a special or inherited method, its class."""
    path, (owner, _, name) = definition.symbol.path, definition.symbol.qualname.rpartition(".")
    is_special = name.startswith("__") and name.endswith("__")
    if owner and (is_special or any(relatives_of(definition, index))):
        return index.definitions[path, owner]
    return definition


def _first_user(gone: Gone, index: ReferenceIndex, *, judge: Judge) -> str:
    return next(render(use) for use, _ in _outstanding(gone, index, judge=judge))
