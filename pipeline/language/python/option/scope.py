"""Find all that has to do with an option: who takes it, keeps it, passes it on."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pipeline.language.python.option.code import CONSTRUCTORS, Code, Passed, Stored, Taken
from pipeline.language.python.option.survey import FileOption
from pipeline.language.python.references import Key, ReferenceIndex

# Besides by its name, a class is called by these.
BY_CLASS = frozenset({*CONSTRUCTORS, "cls", "__class__"})


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionScope:
    """An option with its places in a tree."""

    name: str
    # As written.
    default: str
    owners: tuple[Key, ...]
    # Path -> what of it stands there.
    files: Mapping[str, FileOption]
    # Last names of what takes it, and its places among the arguments without names.
    places: Mapping[str, frozenset[int | None]]
    # Classes whose constructors take it, and what inherits from them, with the places at which
    # the constructor takes it that `super()` leads to.
    classes: Mapping[Key, frozenset[int | None]]
    # What its declaration says of it.
    docs: tuple[str, ...] = ()

    def is_called(self, passed: Passed) -> bool:
        """Tell whether a call may be one of an owner."""
        if passed.callee in BY_CLASS:
            return (passed.path, passed.scope.partition(".")[0]) in self.classes
        return passed.callee in self.places

    def places_in(self, passed: Passed) -> frozenset[int | None]:
        """Return the places at which a call to an owner may pass it."""
        if passed.callee in CONSTRUCTORS:
            return self.classes[passed.path, passed.scope.partition(".")[0]]
        return self.places[passed.callee]


def lay_scope(
    name: str,
    owners: Sequence[Key],
    code: Code,
    index: ReferenceIndex,
    *,
    is_package_file: Callable[[str], bool],
) -> OptionScope | str:
    """Lay out where in a tree an option is; or say why that cannot be told."""
    taken = [it for key in owners for it in code.taken.get(name, ()) if it.key == key]
    defaults = {it.default for it in taken}
    if len(defaults) != 1:
        return f"its default differs: {', '.join(sorted(defaults))}"
    classes = _classes(taken, index)
    places = _places(taken, index)
    rivals = [
        it
        for it in code.taken[name]
        if is_package_file(it.key[0])
        and it.key[0].endswith(".py")
        and called_by(it.key) in places
        and it.default not in defaults
    ]
    if rivals:
        return f"a namesake of {called_by(rivals[0].key)} has another default"
    attribute = _attribute(name, owners, classes, code, index, is_package_file)
    scope = OptionScope(
        name=name,
        default=taken[0].default,
        owners=tuple(owners),
        files={},
        places=places,
        classes=classes,
    )
    files = {
        path: FileOption(
            name=name,
            default=scope.default,
            owners=frozenset(it for where, it in owners if path in {where, f"{where}i"}),
            attribute=attribute,
            classes=frozenset(qualname for where, qualname in classes if where == path),
            callees={
                it: next(iter(them)) if len(them) == 1 else None for it, them in places.items()
            },
            busy=_busy(path, {name, attribute}, code),
        )
        for path in sorted(_paths(scope, attribute, code, is_package_file))
    }
    return replace(scope, files=files)


def _busy(path: str, words: set[str], code: Code) -> frozenset[str]:
    """Return the functions and methods of a file that some words stand in."""
    return frozenset(
        qualname
        for (where, qualname), found in code.words.items()
        if where == path and not words.isdisjoint(found)
    )


def heirs_of(key: Key, index: ReferenceIndex) -> set[Key]:
    """Return a class and all that inherit from it in the tree."""
    heirs = {key}
    while fresh := {it for it, parents in index.parents.items() if parents & heirs} - heirs:
        heirs |= fresh
    return heirs


def is_constructor(qualname: str) -> bool:
    """Tell whether a qualified name is that of a constructor."""
    return qualname.rpartition(".")[2] in CONSTRUCTORS


def called_by(key: Key) -> str:
    """Return the last name by which a function is called: of a constructor, its class."""
    parts = key[1].split(".")
    return parts[-2] if is_constructor(key[1]) and len(parts) > 1 else parts[-1]


def _places(taken: Sequence[Taken], index: ReferenceIndex) -> dict[str, frozenset[int | None]]:
    """Return by which last names functions are called, and where they then take the parameter."""
    places: dict[str, frozenset[int | None]] = {}
    for it in taken:
        path, qualname = it.key
        top = qualname.partition(".")[0]
        names = [called_by(it.key)]
        if is_constructor(qualname):
            heirs = (key for key in heirs_of((path, top), index) if _inherits(key, index))
            names += [*BY_CLASS, *(name for _, name in heirs)]
        if is_constructor(qualname) or "." not in qualname:
            names += [binding.name for binding in index.imports.get((path, top), ())]
        for name in set(names):
            places[name] = places.get(name, frozenset()) | {it.place}
    return places


def _classes(taken: Sequence[Taken], index: ReferenceIndex) -> dict[Key, frozenset[int | None]]:
    """Return classes that take it when they are made, with the places of the nearest base."""
    makers = {
        (it.key[0], it.key[1].rpartition(".")[0]): it.place
        for it in taken
        if is_constructor(it.key[1])
    }
    heirs = {key: heirs_of(key, index) for key in makers}
    classes: dict[Key, frozenset[int | None]] = {}
    for key in {it for them in heirs.values() for it in them}:
        bases = [it for it in makers if it != key and key in heirs[it]]
        nearest = [
            it for it in bases if not any(it != other and other in heirs[it] for other in bases)
        ]
        classes[key] = frozenset(makers[it] for it in nearest)
    return classes


def _inherits(key: Key, index: ReferenceIndex) -> bool:
    members = index.definitions[key].members if key in index.definitions else ()
    return not set(CONSTRUCTORS).intersection(members)


def _attribute(
    name: str,
    owners: Sequence[Key],
    classes: Collection[Key],
    code: Code,
    index: ReferenceIndex,
    is_package_file: Callable[[str], bool],
) -> str:
    """Return the attribute of `self` that keeps the option, if it has no other use; else empty."""
    for attribute, stores in code.stores.items():
        kept = [it for it in stores if is_package_file(it.path)]
        if any(_keeps(it, name, owners) for it in kept):
            is_alone = len(kept) == 1 and _is_own(attribute, classes, code, index, is_package_file)
            return attribute if is_alone else ""
    return ""


def _keeps(stored: Stored, name: str, owners: Sequence[Key]) -> bool:
    is_owner = (stored.path, stored.scope) in owners and is_constructor(stored.scope)
    return is_owner and stored.owner == "self" and stored.value == name


def _is_own(
    attribute: str,
    classes: Collection[Key],
    code: Code,
    index: ReferenceIndex,
    is_package_file: Callable[[str], bool],
) -> bool:
    """Tell whether only methods of some classes read an attribute, and those of `self`."""
    uses = [it for it in index.attributes.get(attribute, ()) if is_package_file(it.path)]
    strings = [it for it in index.words.get(attribute, ()) if it.kind == "string"]
    is_bound = any(attribute in index.definitions[it].members for it in classes)
    is_quoted = any(is_package_file(it.path) for it in strings)
    is_inside = all((it.path, it.scope.partition(".")[0]) in classes for it in uses)
    is_foreign = any(map(is_package_file, code.foreign.get(attribute, ())))
    return is_inside and not (is_bound or is_quoted or is_foreign)


def _paths(
    scope: OptionScope,
    attribute: str,
    code: Code,
    is_package_file: Callable[[str], bool],
) -> Iterator[str]:
    """Yield the files that an option stands in."""
    stubs = {f"{path}i" for path, _ in scope.owners}
    found = {path for path, _ in scope.owners}
    found |= {path for path, _ in code.words if path in stubs}
    readers = {path for (path, _), words in code.words.items() if attribute and attribute in words}
    found |= readers & {path for path, _ in scope.classes}
    for calls in code.calls.values():
        for it in calls:
            if is_package_file(it.path) and scope.is_called(it):
                found.add(it.path)
    yield from found
