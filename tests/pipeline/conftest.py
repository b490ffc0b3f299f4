"""A real sandbox, a real environment and small repositories, for the tests of the stages.

What is built is kept in a folder of its own under the system's temporary one, which all workers
and later sessions share.
"""

import fcntl
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache as cached
from pathlib import Path

import pytest

from pipeline.desk import Folders, open_desk
from pipeline.environment import BuiltEnvironment, build, resolve
from pipeline.index import package_index
from pipeline.make import make_task
from pipeline.prepare import Prepared, prepare_repo
from pipeline.repo import fetch
from pipeline.sandbox.choose import open_sandbox
from pipeline.sandbox.protocol import Limits, Sandbox
from pipeline.selection import Choice
from pipeline.task.grade import Desk
from pipeline.task.origin import Environment, Install, Repo, Source, TestCommand
from pipeline.task.record import Task
from pipeline.task.reject import Reject
from pipeline.task.suite import Bench, SuiteRequest, SuiteRun, run_suite
from tests.pipeline import pantry

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
# Pinned, so that every day has the same environment; it has the `subtests` fixture.
PYTEST = Install(packages=("pytest==9.0.2",), exclude_newer="2026-01-31")
LIMITS = Limits(wall_s=60, cpu_s=60)

MakeTree = Callable[[Mapping[str, str]], Path]
RepoFor = Callable[..., Repo]
DeskFor = Callable[..., Desk]
RunFiles = Callable[..., SuiteRun]
TaskOf = Callable[[str], Task | Reject]


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    opened = open_sandbox("auto")
    yield opened
    opened.stop()


@pytest.fixture(scope="session")
def cache() -> Path:
    """Return the folder of what is built once and shared by all sessions of this user."""
    folder = Path(tempfile.gettempdir(), f"regrow-tests-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    assert folder.stat().st_uid == os.getuid(), folder
    return folder


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Let one worker at a time into a block; the others find its work done."""
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def folders(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Folders:
    """Return a run's folders; nobody empties them."""
    run = tmp_path_factory.mktemp("run")
    return Folders(run=run, cache=cache, index=package_index(), scratch=run / "work")


@pytest.fixture(scope="session")
def make_tree(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> MakeTree:
    """Return a maker of repositories: the files by path, ready for the sandbox."""

    def make(files: Mapping[str, str]) -> Path:
        tree = tmp_path_factory.mktemp("tree")
        for path, text in files.items():
            file = tree / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode("utf-8", "surrogateescape"))
        sandbox.adopt(tree)
        return tree

    return make


@pytest.fixture(scope="session")
def repo_for() -> RepoFor:
    """Return a maker of manifest entries for trees; further arguments are the TestCommand's."""

    def make(tree: Path, *, name: str = "small", **command: object) -> Repo:
        return Repo(
            name=name,
            source=Source(kind="path", location=str(tree), pin=""),
            licence="MIT",
            python=PYTHON,
            install=PYTEST,
            test=TestCommand(**{"wall_s": 1.0, **command}),
        )

    return make


@pytest.fixture(scope="session")
def environment(make_tree: MakeTree, repo_for: RepoFor, folders: Folders) -> Environment:
    """Return an environment that holds pytest alone, for trees without a `src` folder."""
    repo = repo_for(make_tree({"small.py": ""}))
    fetched = fetch(repo, into=folders.run, cache=folders.cache, index=folders.index)
    resolved = resolve(repo, fetched=fetched, cache=folders.cache, index=folders.index)
    assert isinstance(resolved, Environment), resolved
    return resolved


@pytest.fixture(scope="session")
def bench(
    environment: Environment,
    folders: Folders,
    sandbox: Sandbox,
    make_tree: MakeTree,
    tmp_path_factory: pytest.TempPathFactory,
) -> Bench:
    """Return a bench with the bytecode of pytest."""
    with locked(folders.cache):
        built = build(environment, cache=folders.cache, index=folders.index)
        assert isinstance(built, BuiltEnvironment), built
    warm = Bench(
        environment=built.folder,
        interpreter=built.interpreter_prefix,
        bytecode=tmp_path_factory.mktemp("warm"),
        command=TestCommand(),
        import_roots=(".",),
    )
    tree = make_tree({"test_warm.py": "def test_warm(): assert True"})
    request = SuiteRequest(keep_bytecode=True)
    run_suite(sandbox, tree=tree, bench=warm, request=request, limits=LIMITS)
    return warm


@pytest.fixture(scope="session")
def desk_for(
    sandbox: Sandbox, bench: Bench, repo_for: RepoFor, tmp_path_factory: pytest.TempPathFactory
) -> DeskFor:
    """Return a maker of desks, each with bytecode of its own; takes what `repo_for` takes."""

    def make(tree: Path, **command: object) -> Desk:
        folder = tmp_path_factory.mktemp("desk")
        bytecode = shutil.copytree(bench.bytecode, folder / "bytecode")
        sandbox.adopt(bytecode)
        test = repo_for(tree, **command).test
        own = Bench(
            environment=bench.environment,
            interpreter=bench.interpreter,
            bytecode=bytecode,
            command=test,
            import_roots=test.import_roots or (".",),
        )
        return Desk(tree=tree, bench=own, sandbox=sandbox, scratch=folder / "work")

    return make


@pytest.fixture(scope="session")
def run_files(make_tree: MakeTree, desk_for: DeskFor) -> RunFiles:
    """Return a runner of the suite of a new repository, or of a tree."""

    def run(
        files: Mapping[str, str] | Path,
        request: SuiteRequest | None = None,
        *,
        limits: Limits = LIMITS,
        **command: object,
    ) -> SuiteRun:
        tree = files if isinstance(files, Path) else make_tree(files)
        desk = desk_for(tree, **command)
        return run_suite(
            desk.sandbox,
            tree=desk.tree,
            bench=desk.bench,
            request=request or SuiteRequest(),
            limits=limits,
        )

    return run


@pytest.fixture(scope="session")
def prepared(
    make_tree: MakeTree, repo_for: RepoFor, folders: Folders, sandbox: Sandbox
) -> Prepared:
    """Return the pantry, measured and traced, with a slot for each candidate."""
    repo = repo_for(make_tree(pantry.FILES), name="pantry")
    result = prepare_repo(repo, folders=folders, sandbox=sandbox, choice=Choice())
    assert isinstance(result, Prepared), result
    return result


@pytest.fixture(scope="session")
def pantry_desk(prepared: Prepared, folders: Folders, sandbox: Sandbox) -> Desk:
    """Return the desk where patches of the pantry are graded."""
    desk = open_desk(
        prepared.snapshot,
        prepared.environment,
        command=prepared.repo.test,
        folders=folders,
        sandbox=sandbox,
    )
    assert isinstance(desk, Desk), desk
    return desk


@pytest.fixture(scope="session")
def task_of(prepared: Prepared, pantry_desk: Desk, folders: Folders) -> TaskOf:
    """Return a maker of the pantry's tasks by title; each is made once."""

    @cached
    def make(title: str) -> Task | Reject:
        feature = next(it for slot in prepared.slots for it in slot if it.title == title)
        return make_task(feature, prepared=prepared, desk=pantry_desk, folders=folders, seed=0)

    return make
