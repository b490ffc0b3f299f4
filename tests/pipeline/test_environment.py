"""A Repo's environment is locked from wheels alone and works wherever it is mounted."""

import dataclasses
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.cache import cache_folder
from pipeline.environment import (
    BuiltEnvironment,
    IndexUnreachableError,
    InstallError,
    build,
    digest_of,
    find_import_roots,
    resolve,
)
from pipeline.index import package_index
from pipeline.repo import Fetched, fetch
from pipeline.task.origin import Environment, Install, Repo, Source, TestCommand
from pipeline.task.reject import Reject
from pipeline.uv import describe_interpreter
from tests.pipeline.package_index import Offer, refuse, serve, wheel, write_tree

SPY = "import pathlib; pathlib.Path({!r}).touch()\n"
PYPROJECT = """\
[project]
name = "Tiny"
version = "1.5"
dependencies = ["helper>=1"]
[project.scripts]
tiny = "tiny:main"
"""


OFFERS = (
    Offer("pytest-9.0-py3-none-any.whl", wheel("pytest", "9.0", requires=("tiny",))),
    Offer("tiny-1.5-py3-none-any.whl", wheel("tiny", "1.5", source="COPY = True\n")),
    Offer("helper-1.0-py3-none-any.whl", wheel("helper", "1.0", source="NUMBER = 1\n")),
    Offer("helper-2.0-py3-none-any.whl", wheel("helper", "2.0"), uploaded="2026-01-01T00:00:00Z"),
    Offer("source-1.0.tar.gz", b"never built"),
)


@pytest.fixture(scope="module")
def index() -> Iterator[str]:
    """An index of wheels that carry the names of real packages."""
    with serve(*OFFERS) as url:
        yield url


def _fetched(tmp_path: Path, python: str = "3.11", *packages: str) -> tuple[Repo, Fetched]:
    files = {"pyproject.toml": PYPROJECT, "src/tiny.py": "COPY = False\n"}
    repo = Repo(
        name="tiny",
        source=Source(kind="path", location=str(write_tree(tmp_path / "origin", files)), pin=""),
        licence="MIT",
        python=python,
        install=Install(packages=packages, exclude_newer="2025-01-01"),
        test=TestCommand(),
    )
    fetched = fetch(repo, into=tmp_path / "run", cache=tmp_path / "cache", index="")
    assert isinstance(fetched, Fetched)
    return repo, fetched


def _resolved(tmp_path: Path, index: str, *packages: str) -> Environment | Reject:
    repo, fetched = _fetched(tmp_path, "3.11", *packages)
    return resolve(repo, fetched=fetched, cache=tmp_path / "cache", index=index)


def _run(folder: Path, code: str) -> str:
    command = [folder / "bin" / "python", "-c", code]
    return subprocess.run(
        command, capture_output=True, text=True, check=True, cwd="/"
    ).stdout.strip()


def test_the_lock_has_hashes_and_no_host_and_is_as_of_the_date(tmp_path: Path, index: str):
    environment = _resolved(tmp_path, index)
    assert isinstance(environment, Environment)
    lines = [line.split("==")[0] for line in environment.lock.splitlines() if "==" in line]
    assert lines == ["helper", "pytest"]
    assert "helper==1.0 \\\n    --hash=sha256:" in environment.lock
    assert "127.0.0.1" not in environment.lock
    assert "#" not in environment.lock
    assert environment.exclude_newer == "2025-01-01"
    assert environment.import_roots == ("src",)


def test_the_digest_is_that_of_the_lock_and_not_of_the_route_to_it(tmp_path: Path, index: str):
    first = _resolved(tmp_path / "a", index)
    second = _resolved(tmp_path / "b", index)
    other = _resolved(tmp_path / "c", index, "helper<1.0.1", "tiny[none]", "pytest")
    assert first == second
    assert isinstance(other, Environment)
    assert other.digest == first.digest
    assert other.route == "packages"


def test_the_tree_is_the_only_copy_of_the_package_under_test(tmp_path: Path, index: str):
    environment = _resolved(tmp_path, index)
    built = build(environment, cache=tmp_path / "cache", index=index)
    assert isinstance(built, BuiltEnvironment)
    assert not list(built.folder.rglob("tiny.py"))
    [paths] = [path.read_text() for path in built.folder.rglob("regrow.pth")]
    assert paths == "/work/src\n"


def test_importlib_metadata_knows_the_package_under_test(tmp_path: Path, index: str):
    environment = _resolved(tmp_path, index)
    built = build(environment, cache=tmp_path / "cache", index=index)
    code = (
        "from importlib.metadata import version, requires, entry_points as e; import helper; "
        "print(version('tiny'), requires('Tiny'), e(name='tiny')['tiny'].value, helper.NUMBER)"
    )
    assert _run(built.folder, code) == "1.5 ['helper>=1'] tiny:main 1"


def test_an_environment_is_built_once_and_again_without_the_index(tmp_path: Path):
    cache = tmp_path / "cache"
    with serve(*OFFERS) as url:
        environment = _resolved(tmp_path, url)
        built = build(environment, cache=cache, index=url)
    marker = built.folder / "marker"
    marker.touch()
    assert build(environment, cache=cache, index=url) == built
    assert marker.exists()
    (built.folder / "bin" / "python").unlink()
    assert build(environment, cache=cache, index=url) == built
    assert not marker.exists()
    assert [path.name for path in (cache / "environments").iterdir()] == [environment.digest]


def test_environments_of_one_lock_are_equal_on_whatever_day_they_are_built(
    tmp_path: Path, index: str
):
    environment = _resolved(tmp_path, index)
    assert isinstance(environment, Environment)

    def listing(cache: str) -> dict[str, tuple[int, bytes]]:
        built = build(environment, cache=tmp_path / cache, index=index)
        assert isinstance(built, BuiltEnvironment)
        files = [it for it in built.folder.rglob("*") if not it.is_symlink() and it.is_file()]
        return {
            str(it.relative_to(built.folder)): (it.stat().st_mtime_ns, it.read_bytes())
            for it in files
            # Names of the folder, the files of uv itself.
            if it.parent.name != "bin" and it.name not in {"RECORD", "uv_cache.json"}
        }

    first, second = listing("one"), listing("two")
    assert first == second
    assert any(name.endswith(".pyc") for name in first)
    assert len({time for time, _ in first.values()}) == 1


def test_code_of_dependencies_does_not_run_while_they_are_installed(tmp_path: Path):
    spy = SPY.format(str(tmp_path / "ran"))
    evil = wheel("evil", "1.0", source=spy, more={"evil.pth": "import evil\n"})
    offers = (
        Offer("evil-1.0-py3-none-any.whl", evil),
        Offer("pytest-9.0-py3-none-any.whl", wheel("pytest", "9.0")),
        Offer("helper-1.0-py3-none-any.whl", wheel("helper", "1.0")),
    )
    with serve(*offers) as url:
        environment = _resolved(tmp_path, url, "evil")
        built = build(environment, cache=tmp_path / "cache", index=url)
        assert build(environment, cache=tmp_path / "cache", index=url) == built
    assert list(built.folder.rglob("evil.cpython-311.pyc"))
    assert not (tmp_path / "ran").exists()
    _run(built.folder, "pass")
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize("package", ["nowhere", "source", "helper>5"])
def test_what_the_index_cannot_give_as_a_wheel_is_a_reject(
    tmp_path: Path, index: str, package: str
):
    reject = _resolved(tmp_path, index, package)
    assert isinstance(reject, Reject)
    assert (reject.stage, reject.reason) == ("environment", "unresolvable")
    assert package.partition(">")[0] in reject.detail
    assert "\n" not in reject.detail


def test_an_interpreter_that_is_not_there_is_a_reject(tmp_path: Path, index: str):
    for python in ("3.99", "3.3"):
        repo, fetched = _fetched(tmp_path, python)
        reject = resolve(repo, fetched=fetched, cache=tmp_path / "cache", index=index)
        assert isinstance(reject, Reject)
        assert reject.reason == "no_interpreter"


def test_an_index_that_does_not_answer_is_an_error_and_no_verdict(
    tmp_path: Path, index: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    gone = "http://127.0.0.1:9/simple"
    with pytest.raises(IndexUnreachableError):
        _resolved(tmp_path / "a", gone)
    environment = _resolved(tmp_path / "b", index)
    with pytest.raises(IndexUnreachableError):
        build(environment, cache=tmp_path / "empty", index=gone)
    assert not list((tmp_path / "empty" / "environments").iterdir())


@pytest.mark.parametrize("status", [401, 403, 429, 503])
def test_an_index_that_refuses_is_an_error_and_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int
):
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    with refuse(status) as url, pytest.raises(IndexUnreachableError, match=str(status)):
        _resolved(tmp_path, url)


def test_an_index_that_has_nothing_is_a_verdict(tmp_path: Path):
    with refuse(404) as url:
        reject = _resolved(tmp_path, url)
    assert isinstance(reject, Reject)
    assert reject.reason == "unresolvable"


@pytest.mark.parametrize("script", ["exit 3", "echo Python"])
def test_a_python_that_does_not_work_is_an_error_of_the_machine(tmp_path: Path, script: str):
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    with pytest.raises(InstallError, match="does not work"):
        describe_interpreter(python)


def test_a_machine_that_cannot_write_is_an_error_and_no_verdict(tmp_path: Path, index: str):
    environment = _resolved(tmp_path, index)
    cache = tmp_path / "broken"
    cache.mkdir()
    (cache / "uv").write_text("a file where uv wants a folder")
    with pytest.raises(InstallError):
        build(environment, cache=cache, index=index)


def test_a_wheel_with_another_hash_is_a_reject(tmp_path: Path, index: str):
    environment = _resolved(tmp_path, index)
    start, _, digest = environment.lock.partition("sha256:")
    forged = dataclasses.replace(environment, lock=f"{start}sha256:{'0' * 64}{digest[64:]}")
    with pytest.raises(ValueError, match="expected"):
        build(forged, cache=tmp_path / "cache", index=index)
    forged = dataclasses.replace(forged, digest=digest_of(forged))
    reject = build(forged, cache=tmp_path / "cache", index=index)
    assert isinstance(reject, Reject)
    assert reject.reason == "install_failed"


def test_import_roots_are_stated_or_src_or_the_top(tmp_path: Path):
    stated = TestCommand(import_roots=("lib", "."))
    assert find_import_roots(stated, tmp_path) == ("lib", ".")
    assert find_import_roots(TestCommand(), tmp_path) == (".",)
    write_tree(tmp_path, {"src/a/b/c.py": ""})
    assert find_import_roots(TestCommand(), tmp_path) == ("src",)


def test_the_cache_is_where_the_variables_say(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("REGROW_CACHE", "/a")
    monkeypatch.setenv("XDG_CACHE_HOME", "/b")
    assert cache_folder() == Path("/a")
    monkeypatch.delenv("REGROW_CACHE")
    assert cache_folder() == Path("/b/regrow")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "regrow"


def test_a_real_pytest_from_the_real_index_works_after_its_folder_moved(tmp_path: Path):
    files = {"iniconfig.py": "", "test_moved.py": "def test_moved():\n    pass\n"}
    repo = Repo(
        name="iniconfig-like",
        source=Source(kind="path", location=str(write_tree(tmp_path / "origin", files)), pin=""),
        licence="MIT",
        python="3.11",
        install=Install(packages=("iniconfig",), exclude_newer="2026-01-01"),
        test=TestCommand(),
    )
    cache, url = tmp_path / "cache", package_index()
    fetched = fetch(repo, into=tmp_path / "run", cache=cache, index=url)
    environment = resolve(repo, fetched=fetched, cache=cache, index=url)
    assert isinstance(environment, Environment)
    built = build(environment, cache=cache, index=url)
    assert isinstance(built, BuiltEnvironment)
    moved = built.folder.rename(tmp_path / "env")
    done = subprocess.run(
        [moved / "bin" / "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path / "origin",
        env={},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 passed" in done.stdout
    assert (built.interpreter_prefix / "lib").is_dir()
