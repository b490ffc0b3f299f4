"""Find what a Repo's tests need, where the project says it."""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

from packaging.markers import default_environment
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from pipeline.metadata import Project
from pipeline.requirement_files import CANDIDATES, read_requirements
from pipeline.static_metadata import load_toml, table
from pipeline.task.origin import Install
from pipeline.task.reject import Reject
from pipeline.tox import tox_requirements

# What groups and extras for tests are called, the likeliest first.
NAMES = ("tests", "test", "testing", "dev")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependencies:
    """What to resolve, and where it was found.

    Example: `Dependencies(route="group:tests", requirements=("blinker>=1.9", "pytest"))`.
    """

    # As in `Environment.route`; several explicit ones are joined by commas.
    route: str
    # Requirement strings, the project itself never among them.
    requirements: tuple[str, ...]


def find_dependencies(
    install: Install, *, tree: Path, project: Project, python: str
) -> Dependencies | Reject:
    """Take what the manifest names; else the first of groups, extras, requirement files, tox.

    The project's own requirements and pytest are always added. What is no plain requirement
    (URLs, version control, other folders) is left out, since only wheels of the index are
    installed.

    Args:
        install: what the manifest names.
        tree: the Snapshot.
        project: the Snapshot's distribution.
        python: full version of the interpreter, for markers.
    """
    places = _Places(tree=tree, project=project, python=python)
    if install.groups or install.extras or install.requirements or install.packages:
        found = _explicit(install, places)
    else:
        found = _discovered(places)
    if isinstance(found, Reject):
        return found
    everything = (*project.requires, *found.requirements, "pytest")
    return Dependencies(route=found.route, requirements=places.plain(everything))


def _explicit(install: Install, places: "_Places") -> Dependencies | Reject:
    wanted = [
        *(("group", name) for name in install.groups),
        *(("extra", name) for name in install.extras),
        *(("requirements", name) for name in install.requirements),
    ]
    lines: list[str] = []
    for kind, name in wanted:
        found = places.lines(kind, name)
        if found is None:
            detail = f"{places.project.name} has no {kind}:{name}"
            return Reject(stage="environment", reason="unresolvable", detail=detail)
        lines += found
    routes = [f"{kind}:{name}" for kind, name in wanted] + ["packages"] * bool(install.packages)
    return Dependencies(route=",".join(routes), requirements=(*lines, *install.packages))


def _discovered(places: "_Places") -> Dependencies:
    routes = [
        *(("group", name) for name in NAMES),
        *(("extra", name) for name in NAMES),
        *(("requirements", name) for name in CANDIDATES),
        ("tox", ""),
    ]
    for kind, name in routes:
        requirements = places.plain(places.lines(kind, name) or ())
        if requirements:
            route = f"{kind}:{name}" if name else kind
            return Dependencies(route=route, requirements=requirements)
    return Dependencies(route="none", requirements=())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Places:
    """Where a project may say what its tests need."""

    tree: Path
    project: Project
    python: str

    def lines(self, kind: str, name: str) -> list[str] | None:
        """Return the raw requirements of one place; None when there is no such place."""
        if kind == "group":
            return self.of_group(name, seen=frozenset())
        if kind == "extra":
            return self.of_extra(name)
        if kind == "tox":
            return tox_requirements(self.tree)
        return read_requirements(self.tree, name) if (self.tree / name).is_file() else None

    def of_group(self, name: str, *, seen: frozenset[str]) -> list[str] | None:
        """Return a dependency group with the groups that it includes (PEP 735)."""
        groups = table(load_toml(self.tree / "pyproject.toml"), "dependency-groups")
        entries = {canonicalize_name(key): value for key, value in groups.items()}
        name = canonicalize_name(name)
        if name in seen or not isinstance(entries.get(name), list):
            return None
        found: list[str] = []
        for entry in entries[name]:
            if isinstance(entry, str):
                found.append(entry)
            elif isinstance(entry, dict):
                included = str(entry.get("include-group", ""))
                found += self.of_group(included, seen=seen | {name}) or ()
        return found

    def of_extra(self, name: str) -> list[str] | None:
        """Return the requirements of an extra that hold here, without their markers."""
        name = canonicalize_name(name)
        lines = dict(self.project.extras).get(name)
        if lines is None:
            return None
        here: dict[str, str | AbstractSet[str]] = {
            **{key: str(value) for key, value in default_environment().items()},
            "python_version": ".".join(self.python.split(".")[:2]),
            "python_full_version": self.python,
            "extra": name,
        }
        found = []
        for requirement in filter(None, map(_parse, lines)):
            if requirement.marker is None or requirement.marker.evaluate(here):
                requirement.marker = None
                found.append(str(requirement))
        return found

    def plain(self, lines: Iterable[str]) -> tuple[str, ...]:
        """Keep what the index can serve, once each; the project's own extras are replaced."""
        return tuple(dict.fromkeys(self._plain(lines, seen=frozenset())))

    def _plain(self, lines: Iterable[str], *, seen: frozenset[str]) -> Iterator[str]:
        for line in lines:
            # `.[test]` is the project, by its folder.
            requirement = _parse(self.project.name + line[1:] if line[:1] == "." else line)
            if requirement is None:
                continue
            if canonicalize_name(requirement.name) == canonicalize_name(self.project.name):
                for extra in sorted(requirement.extras - seen):
                    yield from self._plain(self.of_extra(extra) or (), seen=seen | {extra})
            elif requirement.url is None:
                yield str(requirement)


def _parse(line: str) -> Requirement | None:
    try:
        return Requirement(line)
    except InvalidRequirement:
        return None
