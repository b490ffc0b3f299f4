"""Resolve what a Repo's tests need into a lock, and build the environment that it describes."""

import contextlib
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, replace
from email.parser import HeaderParser
from pathlib import Path, PurePosixPath

from pipeline.cache import beside, publish
from pipeline.dependencies import find_dependencies
from pipeline.index import IndexUnreachableError
from pipeline.repo import Fetched
from pipeline.snapshot import MTIME, snapshot_tree
from pipeline.task.canonical import content_id
from pipeline.task.origin import Environment, Repo, TestCommand
from pipeline.task.reject import Reject
from pipeline.task.suite import ENVIRONMENT, TREE
from pipeline.uv import (
    InstallError,
    Interpreter,
    describe_interpreter,
    find_interpreter,
    run_uv,
)

__all__ = [
    "BuiltEnvironment",
    "IndexUnreachableError",
    "InstallError",
    "build",
    "digest_of",
    "find_import_roots",
    "resolve",
]

# Part of the digest: raised when the same lock is built into another folder.
LAYOUT = 2
# Of a name in a file's name.
MAX_PART = 100
# Dependencies are never built here, since building runs their code.
WHEELS_ONLY = ("--only-binary", ":all:")


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltEnvironment:
    """An Environment on disk, good at any path it is mounted at.

    Example: `BuiltEnvironment(folder=Path("…/77ab…"), interpreter_prefix=Path("/usr"))`.
    """

    # A relocatable virtual environment; the package under test is there as metadata alone.
    folder: Path
    # Prefix of the interpreter that the folder links to, needed at this same path.
    interpreter_prefix: Path


def resolve(repo: Repo, *, fetched: Fetched, cache: Path, index: str) -> Environment | Reject:
    """Lock what the suite needs, as the index was on the day of the release.

    Args:
        repo: names the interpreter and, perhaps, the dependencies.
        fetched: the Repo's files.
        cache: where trees and wheels are kept.
        index: URL of the package index.

    Raises:
        IndexUnreachableError: the index did not answer.
        InstallError: uv could not work on this machine.
    """
    interpreter = find_interpreter(repo.python, cache=cache)
    if isinstance(interpreter, Reject):
        return interpreter
    tree = snapshot_tree(fetched.archive, cache=cache)
    dependencies = find_dependencies(
        repo.install, tree=tree, project=fetched.project, python=interpreter.version
    )
    if isinstance(dependencies, Reject):
        return dependencies
    date = repo.install.exclude_newer or fetched.snapshot.released
    command = (
        *("pip", "compile", "-", "--python", str(interpreter.path)),
        *("--default-index", index),
        *("--generate-hashes", "--no-header", "--no-annotate", *WHEELS_ONLY),
        # uv takes a bare date in the machine's time zone.
        *("--exclude-newer", f"{date}T23:59:59Z"),
        # A second copy of the code under test would hide the tree's, and give deletions away.
        *("--no-emit-package", fetched.project.name),
    )
    wanted = "\n".join(dependencies.requirements)
    lock = run_uv(command, cache=cache, reason="unresolvable", stdin=wanted)
    if isinstance(lock, Reject):
        return lock
    environment = Environment(
        digest="",
        python=repo.python,
        exclude_newer=date,
        route=dependencies.route,
        lock=_without_comments(lock),
        metadata=fetched.project.metadata,
        entry_points=fetched.project.entry_points,
        import_roots=find_import_roots(repo.test, tree),
    )
    return replace(environment, digest=digest_of(environment))


def digest_of(environment: Environment) -> str:
    """Return the sha256 of everything that decides what is built."""
    return content_id(
        LAYOUT,
        environment.python,
        environment.lock,
        environment.metadata,
        environment.entry_points,
        environment.import_roots,
    )


def find_import_roots(command: TestCommand, tree: Path) -> tuple[str, ...]:
    """Return the folders of a tree that go on `sys.path`: as stated, else `src`, else the top."""
    if command.import_roots:
        return command.import_roots
    return ("src",) if any((tree / "src").rglob("*.py")) else (".",)


def build(environment: Environment, *, cache: Path, index: str) -> BuiltEnvironment | Reject:
    """Install a lock under `cache/environments`, once.

    Args:
        environment: what to build.
        cache: where wheels and environments are kept; no network is needed when it has all.
        index: URL of the package index.

    Raises:
        ValueError: the digest is not the Environment's, so it must not take its place.
        IndexUnreachableError: a wheel is not in the cache and the index did not answer.
        InstallError: uv could not work on this machine.
        OSError: the disk is full or broken.
    """
    if environment.digest != digest_of(environment):
        raise ValueError(f"{environment.digest}: expected {digest_of(environment)}, the content's")
    folder = cache / "environments" / environment.digest
    python = folder / "bin" / "python"
    # The link is dead when the interpreter has gone from the machine since.
    if folder.is_dir() and not python.exists():
        shutil.rmtree(folder)
    if not folder.is_dir():
        interpreter = find_interpreter(environment.python, cache=cache)
        if isinstance(interpreter, Reject):
            return interpreter
        with beside(folder) as scratch:
            partial = scratch / "environment"
            refused = _install(
                partial, environment, interpreter=interpreter, cache=cache, index=index
            )
            if refused is not None:
                return refused
            _describe_project(partial, environment)
            _compile(partial, interpreter)
            publish(partial, folder)
    return BuiltEnvironment(folder=folder, interpreter_prefix=describe_interpreter(python).prefix)


def _install(
    folder: Path, environment: Environment, *, interpreter: Interpreter, cache: Path, index: str
) -> Reject | None:
    """Make a virtual environment and install the lock into it."""
    created = run_uv(
        ("venv", "--relocatable", "--no-project", "--python", str(interpreter.path), str(folder)),
        cache=cache,
        reason="install_failed",
    )
    if isinstance(created, Reject):
        return created
    command = (
        *("pip", "install", "--python", str(folder), "--requirements", "-"),
        *("--default-index", index, "--require-hashes", "--no-deps", *WHEELS_ONLY),
    )
    installed = _offline_first(command, lock=environment.lock, cache=cache)
    if isinstance(installed, Reject):
        return installed
    return None


def _offline_first(command: tuple[str, ...], *, lock: str, cache: Path) -> str | Reject:
    """Install from the cache alone when it has every wheel: no index can fail that."""
    with contextlib.suppress(IndexUnreachableError, InstallError):
        installed = run_uv(
            (*command, "--offline"), cache=cache, reason="install_failed", stdin=lock
        )
        if not isinstance(installed, Reject):
            return installed
    return run_uv(command, cache=cache, reason="install_failed", stdin=lock)


def _describe_project(folder: Path, environment: Environment) -> None:
    """Make the package under test importable from its tree and known to `importlib.metadata`."""
    packages = _site_packages(folder)
    roots = [str(PurePosixPath(TREE, root)) for root in environment.import_roots]
    (packages / "regrow.pth").write_text("".join(f"{root}\n" for root in roots), encoding="utf-8")
    headers = HeaderParser().parsestr(environment.metadata)
    if not headers["Name"]:
        return
    spelled = (re.sub(r"[^\w.+!]+", "_", headers[key] or "0") for key in ("Name", "Version"))
    info = f"{'-'.join(part[:MAX_PART] for part in spelled)}.dist-info"
    files = {
        f"{info}/METADATA": environment.metadata,
        f"{info}/INSTALLER": "regrow\n",
    }
    if environment.entry_points:
        files[f"{info}/entry_points.txt"] = environment.entry_points
    files[f"{info}/RECORD"] = "".join(f"{file},,\n" for file in [*files, f"{info}/RECORD"])
    (packages / info).mkdir()
    for file, text in files.items():
        (packages / file).write_text(text, encoding="utf-8")


def _site_packages(folder: Path) -> Path:
    return next(folder.glob("lib/python3*/site-packages"))


def _compile(folder: Path, interpreter: Interpreter) -> None:
    """Give all files one time, and compile what is Python; equal locks make equal folders.

    Bytecode names the time of its source, and so do the layers of images: what was compiled for
    one build is good for the next, on another day or another machine.

    By the base interpreter without its site-packages, since installed `.pth` files are code. Files
    that do not compile are left to those who import them.
    """
    _set_times(folder)
    command = [str(interpreter.path), "-I", "-S", "-m", "compileall", "-qq"]
    # Bytecode names its source too, which is to be the path in a sandbox.
    command += ["-s", str(folder), "-p", ENVIRONMENT, str(_site_packages(folder))]
    subprocess.run(command, check=False)
    _set_times(folder)


def _set_times(folder: Path) -> None:
    for root, folders, files in os.walk(folder):
        for name in (*folders, *files):
            os.utime(Path(root, name), (MTIME, MTIME), follow_symlinks=False)


def _without_comments(lock: str) -> str:
    lines = (line.rstrip() for line in lock.splitlines())
    return "".join(f"{line}\n" for line in lines if line and not line.lstrip().startswith("#"))
