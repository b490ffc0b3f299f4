"""Read a manifest: TOML in, Repos out, each fault with its file and line."""

import datetime as dt
import math
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from packaging.requirements import InvalidRequirement, Requirement

from pipeline.task.origin import Install, Repo, Source, TestCommand, Variable
from pipeline.toml_lines import KeyPath, key_lines

# What a Snapshot may be licensed under to be redistributed in a shard; see `repos/README.md`.
PERMISSIVE = (
    "MIT", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0", "ISC", "PSF-2.0",
    "0BSD", "Unlicense", "Zlib", "MIT-0", "BSL-1.0",
)  # fmt: skip

SOURCES = ("sdist", "git", "path")
# The pin that each source needs.
PINS = {"sdist": "sha256", "git": "commit"}
REPO_KEYS = ("name", *SOURCES, *PINS.values(), "licence", "python", "install", "test")
INSTALL_LISTS = ("groups", "extras", "requirements", "packages")
TEST_KEYS = ("args", "variables", "import_roots", "wall_s")


class ManifestError(ValueError):
    """A manifest is not what it should be; one line: `FILE:LINE: KEY: fault`."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What a string must be.

    Example: `Rule("40 hex digits", re.compile("[0-9a-f]{40}").fullmatch)`.
    """

    expected: str
    # True (or a match) for a good value.
    holds: Callable[[str], object]


def load_manifest(path: Path) -> tuple[Repo, ...]:
    """Read the Repos of a manifest, in its order.

    Paths stay as they are spelled, so that tasks say the same wherever the manifest is.

    Raises:
        ManifestError: at the first fault, with its line and what was expected.
    """
    top = _parse(path)
    top.refuse_unknown(("repo",))
    tables = top.entries("repo")
    repos = tuple(_repo(table, folder=path.absolute().parent) for table in tables)
    for number, (table, repo) in enumerate(zip(tables, repos, strict=True)):
        if repo.name in {earlier.name for earlier in repos[:number]}:
            raise table.fault("name", f"{repo.name!r} is taken by an earlier repo")
    return repos


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of the manifest, with what its faults are reported by."""

    data: Mapping[str, object]
    path: KeyPath
    file: Path
    lines: Mapping[KeyPath, int]

    def fault(self, key: str | int, what: str) -> ManifestError:
        """Say what is wrong with a key, at its line or that of the closest table that is there."""
        path: KeyPath = (*self.path, key)
        known = next((path[:n] for n in range(len(path), 0, -1) if path[:n] in self.lines), ())
        name = ".".join(part for part in path if isinstance(part, str))
        return ManifestError(f"{self.file}:{self.lines.get(known, 1)}: {name}: {what}")

    def refuse_unknown(self, keys: tuple[str, ...]) -> None:
        for key in self.data:
            if key not in keys:
                raise self.fault(key, f"unknown key, expected one of {', '.join(keys)}")

    def inner(self, key: str) -> "_Table":
        """Return the table under a key; empty when it is missing."""
        return self.below((key,), self.data.get(key, {}))

    def entries(self, key: str) -> list["_Table"]:
        """Return the tables of an array of at least one."""
        value = self.data.get(key)
        if not isinstance(value, list) or not value:
            raise self.fault(key, f"missing, expected at least one [[{key}]]")
        return [self.below((key, number), item) for number, item in enumerate(value)]

    def below(self, keys: KeyPath, value: object) -> "_Table":
        if not isinstance(value, dict):
            raise self.fault(keys[0], f"found {value!r}, expected a table")
        return _Table(value, (*self.path, *keys), self.file, self.lines)

    def text(self, key: str, rule: Rule) -> str:
        if key not in self.data:
            raise self.fault(key, f"missing, expected {rule.expected}")
        return self.checked(key, self.data[key], rule)

    def checked(self, key: str | int, value: object, rule: Rule) -> str:
        if not isinstance(value, str) or "\0" in value or not rule.holds(value):
            raise self.fault(key, f"found {value!r}, expected {rule.expected}")
        return value

    def texts(self, key: str, rule: Rule) -> tuple[str, ...]:
        value = self.data.get(key, [])
        if not isinstance(value, list):
            raise self.fault(key, f"found {value!r}, expected a list of strings")
        items = _Table({}, (*self.path, key), self.file, self.lines)
        return tuple(items.checked(number, item, rule) for number, item in enumerate(value))


def _parse(path: Path) -> _Table:
    try:
        text = path.read_text(encoding="utf-8")
        data = tomllib.loads(text)
    except OSError as error:
        raise ManifestError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ManifestError(f"{path}:{line}: not TOML: not UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        what, _, where = str(error).rpartition(" (at ")
        found = re.search(r"line (\d+)", where)
        line = int(found[1]) if found else text.rstrip("\n").count("\n") + 1
        raise ManifestError(f"{path}:{line}: not TOML: {what}") from error
    return _Table(data, (), path, key_lines(text))


def _repo(table: _Table, *, folder: Path) -> Repo:
    table.refuse_unknown(REPO_KEYS)
    licence = table.text("licence", Rule(f"of {', '.join(PERMISSIVE)} joined by AND, OR", _spdx))
    return Repo(
        name=table.text("name", Rule("lower-case letters, digits, -", _matches("[a-z0-9-]+"))),
        source=_source(table, folder=folder),
        licence=_spdx(licence),
        python=table.text("python", Rule("a version like 3.11", _matches(r"3\.\d{1,2}"))),
        install=_install(table.inner("install")),
        test=_test(table.inner("test")),
    )


def _source(table: _Table, *, folder: Path) -> Source:
    kinds = [kind for kind in table.data if kind in SOURCES]
    if not kinds:
        raise table.fault("sdist", f"missing, expected one source of {', '.join(SOURCES)}")
    if len(kinds) > 1:
        raise table.fault(kinds[1], f"a second source besides {kinds[0]}")
    kind = kinds[0]
    for other, pin in PINS.items():
        if pin in table.data and other != kind:
            raise table.fault(pin, f"goes with {other}, not with {kind}")
    if kind == "sdist":
        location = table.text("sdist", Rule("name==version", _matches(r"[\w.-]+==[\w.!+-]+")))
        return Source(kind="sdist", location=location, pin=table.text("sha256", _hex(64)))
    if kind == "git":
        location = table.text("git", Rule("a URL or a path", _matches(r"\S.*")))
        return Source(kind="git", location=location, pin=table.text("commit", _hex(40)))
    rule = Rule("a folder, relative to the manifest", lambda path: (folder / path).is_dir())
    return Source(kind="path", location=table.text("path", rule), pin="")


def _install(table: _Table) -> Install:
    table.refuse_unknown((*INSTALL_LISTS, "exclude_newer"))
    date = table.data.get("exclude_newer", "")
    if isinstance(date, dt.date):
        date = date.isoformat()
    return Install(
        groups=table.texts("groups", Rule("the name of a dependency group", bool)),
        extras=table.texts("extras", Rule("the name of an extra", bool)),
        requirements=table.texts("requirements", Rule("a file inside the tree", _is_inside)),
        packages=table.texts("packages", Rule("a requirement", _is_requirement)),
        exclude_newer=table.checked("exclude_newer", date, Rule("a date, 2025-10-17", _is_date)),
    )


def _test(table: _Table) -> TestCommand:
    table.refuse_unknown(TEST_KEYS)
    variables = table.inner("variables")
    for name in variables.data:
        variables.checked(name, name, Rule("a variable's name", _matches(r"[A-Za-z_]\w*")))
    value = Rule("a string", lambda _: True)
    return TestCommand(
        args=table.texts("args", Rule("an argument of pytest", lambda _: True)),
        variables=tuple(
            Variable(name=name, value=variables.text(name, value)) for name in variables.data
        ),
        import_roots=table.texts("import_roots", Rule("a folder inside the tree", _is_inside)),
        wall_s=_seconds(table, "wall_s", default=TestCommand().wall_s),
    )


def _seconds(table: _Table, key: str, *, default: float) -> float:
    value = table.data.get(key, default)
    # A bool is an int for Python, not for TOML.
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf:
        return float(value)
    raise table.fault(key, f"found {value!r}, expected seconds above 0")


def _matches(pattern: str) -> Callable[[str], object]:
    return re.compile(pattern, re.ASCII).fullmatch


def _hex(num_digits: int) -> Rule:
    return Rule(f"{num_digits} hex digits", _matches(f"[0-9a-f]{{{num_digits}}}"))


def _is_inside(path: str) -> bool:
    return (
        bool(path)
        and path.isprintable()
        and not path.startswith("/")
        and ".." not in PurePosixPath(path).parts
    )


def _is_requirement(text: str) -> bool:
    try:
        Requirement(text)
    except InvalidRequirement:
        return False
    return True


def _is_date(text: str) -> bool:
    try:
        return not text or bool(dt.date.fromisoformat(text))
    except ValueError:
        return False


def _spdx(expression: str) -> str:
    """Return the canonical expression, empty when a part of it is not permissive."""
    try:
        canonical = canonicalize_license_expression(expression)
    except InvalidLicenseExpression:
        return ""
    names = set(re.findall(r"[^\s()]+", canonical)) - {"AND", "OR"}
    return canonical if names <= set(PERMISSIVE) else ""
