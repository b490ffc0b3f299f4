"""The records of where a task comes from: a manifest entry, its files, its environment."""

from dataclasses import dataclass
from typing import Literal

SourceKind = Literal["sdist", "git", "path"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """One environment variable of a test command.

    Example: `Variable(name="TZ", value="UTC")`.
    """

    name: str
    # Exactly as the process sees it, no expansion.
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a Repo's files come from, pinned so that they cannot change.

    Example: `Source(kind="sdist", location="toolz==1.2.0", pin="9667a0…")`.
    """

    kind: SourceKind
    # `name==version` of an sdist, URL or path of a git repository, or path of a folder; paths as
    # in the manifest, whose folder they start from.
    location: str
    # sha256 of the sdist, the full commit of a git repository; empty for a plain folder.
    pin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Install:
    """Where the test dependencies are named; empty fields are discovered.

    Example: `Install(groups=("tests",), packages=("trio",))`.
    """

    # Dependency groups of `pyproject.toml` (PEP 735).
    groups: tuple[str, ...] = ()
    # Extras of the project.
    extras: tuple[str, ...] = ()
    # Requirement files, relative to the tree.
    requirements: tuple[str, ...] = ()
    # Requirement strings that no metadata names.
    packages: tuple[str, ...] = ()
    # Resolve as of this ISO date; empty takes the Snapshot's release date.
    exclude_newer: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestCommand:
    """How a Repo's suite is run; the runner itself is always pytest.

    Example: `TestCommand(args=("-o", "addopts=", "tests"))`.
    """

    # Arguments after `pytest`.
    args: tuple[str, ...] = ()
    # Set for the suite, on top of the sandbox's own.
    variables: tuple[Variable, ...] = ()
    # Folders of the tree that go on `sys.path`; empty is discovered.
    import_roots: tuple[str, ...] = ()
    # Expected seconds of one run of the whole suite on a laptop core.
    wall_s: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Repo:
    """A manifest entry: a project, its environment, its suite.

    Example: see `repos/quickstart.toml`.
    """

    # Short name, unique in a manifest: `[a-z0-9-]+`.
    name: str
    source: Source
    # SPDX expression.
    licence: str
    # `major.minor` of the interpreter.
    python: str
    install: Install
    test: TestCommand


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The source tree of a Repo, content-addressed, without git history.

    Example: `Snapshot(digest="3f9c…", released="2025-10-17", num_files=91, num_bytes=412_000)`.
    """

    # sha256 of the canonical tar: sorted members, fixed owners, modes and times.
    digest: str
    # ISO date of the release: the day of the upload, of the commit, or of the newest file.
    released: str
    num_files: int
    num_bytes: int
    # What tools had left with copies of the code, and is not in it.
    scrubbed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Everything but the source: interpreter and locked dependencies.

    Example: `Environment(digest="77ab…", python="3.11", route="group:test", …)`.
    """

    # sha256 of python, lock, distribution metadata and import roots.
    digest: str
    python: str
    # Packages uploaded after this ISO date did not exist for the resolver.
    exclude_newer: str
    # Where the dependencies were found: `group:tests`, `extra:test`, `requirements:…`, `tox`,
    # `packages`, `none`.
    route: str
    # Requirements with versions and sha256 hashes, in the format of pip.
    lock: str
    # Core metadata of the package under test, headers only (RFC 822); empty when it has none.
    metadata: str
    # Its `entry_points.txt`; empty when it has none.
    entry_points: str
    # Folders of the tree on `sys.path`: `src`, `.`; as in the TestCommand, or as discovered.
    import_roots: tuple[str, ...] = ()
