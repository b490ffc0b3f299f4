"""What tests need is found where the project says it, and nothing but index packages is kept."""

from pathlib import Path

import pytest

from pipeline.dependencies import Dependencies, find_dependencies
from pipeline.metadata import Project
from pipeline.task.origin import Install
from pipeline.task.reject import Reject
from tests.pipeline.package_index import write_tree

PROJECT = Project(
    name="Tiny_Lib",
    version="1.0",
    requires=("six>=1", "tiny-lib"),
    extras=(),
    metadata="",
    entry_points="",
)


def _find(
    tree: Path,
    files: dict[str, str],
    *,
    extras: dict[str, tuple[str, ...]] | None = None,
    install: Install | None = None,
) -> Dependencies | Reject:
    project = Project(
        name=PROJECT.name,
        version=PROJECT.version,
        requires=PROJECT.requires,
        extras=tuple(sorted((extras or {}).items())),
        metadata="",
        entry_points="",
    )
    return find_dependencies(
        install or Install(),
        tree=write_tree(tree, files),
        project=project,
        python="3.11.7",
    )


def _is(found: object, route: str, *requirements: str) -> bool:
    return found == Dependencies(route=route, requirements=("six>=1", *requirements))


GROUPS = """
[dependency-groups]
lint = ["ruff"]
Tests = [{include-group = "base"}, "mock", {include-group = "tests"}]
base = ["attrs; python_version > '3'"]
dev = ["wrong"]
"""
TOX = """\
[base]
deps =
    mock
[testenv]
deps =
    {[base]deps}
    # a comment
    attrs  # another
    py38,py39: wrong
    !py3: wrong
    lint: wrong
    -r{toxinidir}/more.txt
    -r ../outside.txt
    -c constraints.txt
    {env:WRONG:wrong}
    -e .
"""
TOX_FILES = {"more.txt": "trio\n", "constraints.txt": "trio<1\n"}
NATIVE = 'env_run_base = { deps = ["mock", "attrs", "-r more.txt"] }\n'


def test_dependency_groups_come_first_with_the_groups_they_include(tmp_path: Path):
    files = {"pyproject.toml": GROUPS, "requirements-dev.txt": "wrong", "tox.ini": TOX}
    found = _find(tmp_path, files, extras={"test": ("wrong",)})
    assert _is(found, "group:tests", 'attrs; python_version > "3"', "mock", "pytest")


def test_extras_come_second_with_those_that_hold_here(tmp_path: Path):
    lines = (
        'mock>1; extra == "test"',
        'wrong; python_version < "3.11" and extra == "test"',
        'attrs; python_full_version >= "3.11.7" and (extra == "test")',
    )
    files = {"requirements-dev.txt": "wrong", "tox.ini": TOX}
    found = _find(tmp_path, files, extras={"test": lines, "dev": ("wrong",)})
    assert _is(found, "extra:test", "mock>1", "attrs", "pytest")


def test_requirement_files_come_third_with_the_files_they_include(tmp_path: Path):
    files = {
        "requirements/tests.txt": (
            "-r base.txt\n--requirement=../more.txt\n# comment\nmock==1 \\\n    --hash=sha256:ab\n"
            "-c c.txt\n--index-url http://127.0.0.1\n-e ../\n./local\n"
            "git+https://example.org/x\nfoo @ https://example.org/foo.whl\n"
        ),
        "requirements/base.txt": "attrs # why\n-r tests.txt\n",
        "more.txt": "trio\n",
        "tox.ini": TOX,
    }
    found = _find(tmp_path, files)
    assert _is(found, "requirements:requirements/tests.txt", "attrs", "trio", "mock==1", "pytest")


@pytest.mark.parametrize(
    "files",
    [
        {"tox.ini": TOX},
        {"setup.cfg": f"[tox:tox]\n{TOX}"},
        {"pyproject.toml": f"[tool.tox]\nlegacy_tox_ini = '''\n{TOX}'''\n"},
        {"pyproject.toml": f"[tool.tox]\n{NATIVE}"},
        {"tox.toml": NATIVE},
    ],
    ids=["tox.ini", "setup.cfg", "legacy", "pyproject", "tox.toml"],
)
def test_tox_comes_last_without_lines_for_some_environments(tmp_path: Path, files: dict[str, str]):
    (tmp_path / "outside.txt").write_text("wrong\n")
    found = _find(tmp_path / "tree", {**files, **TOX_FILES})
    assert _is(found, "tox", "mock", "attrs", "trio", "pytest")


def test_a_place_that_names_only_the_project_is_passed_over(tmp_path: Path):
    found = _find(tmp_path, {"requirements-test.txt": "-e .\n", "tox.ini": "[testenv]\ndeps=mock"})
    assert _is(found, "tox", "mock", "pytest")


def test_with_no_place_there_is_pytest(tmp_path: Path):
    assert _is(_find(tmp_path, {}), "none", "pytest")


def test_the_projects_own_extras_are_replaced_by_what_they_need(tmp_path: Path):
    group = '[dependency-groups]\ntest = ["tiny-lib[All]", ".[fast]", "tiny.lib"]'
    extras = {"all": ("Tiny-Lib[fast,all]", "mock"), "fast": ("attrs",)}
    found = _find(tmp_path, {"pyproject.toml": group}, extras=extras)
    assert _is(found, "group:test", "attrs", "mock", "pytest")


def test_what_the_manifest_names_is_all_that_is_taken(tmp_path: Path):
    install = Install(
        groups=("lint",), extras=("fast",), requirements=("r.txt",), packages=("trio", "pytest<9")
    )
    files = {"pyproject.toml": GROUPS, "r.txt": "mock"}
    found = _find(tmp_path, files, extras={"fast": ("attrs",)}, install=install)
    route = "group:lint,extra:fast,requirements:r.txt,packages"
    assert _is(found, route, "ruff", "attrs", "mock", "trio", "pytest<9", "pytest")


@pytest.mark.parametrize(
    ("install", "absent"),
    [
        (Install(groups=("no",)), "group:no"),
        (Install(extras=("no",)), "extra:no"),
        (Install(requirements=("no.txt",)), "requirements:no.txt"),
    ],
)
def test_what_the_manifest_names_and_the_tree_lacks_is_a_reject(
    tmp_path: Path, install: Install, absent: str
):
    found = _find(tmp_path, {"pyproject.toml": GROUPS}, install=install)
    assert isinstance(found, Reject)
    assert (found.reason, found.detail) == ("unresolvable", f"Tiny_Lib has no {absent}")


def test_a_date_alone_does_not_replace_discovery(tmp_path: Path):
    install = Install(exclude_newer="2025-01-01")
    found = _find(tmp_path, {"pyproject.toml": GROUPS}, install=install)
    assert isinstance(found, Dependencies)
    assert found.route == "group:tests"
