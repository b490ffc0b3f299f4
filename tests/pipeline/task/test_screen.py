"""What of a patch is applied, what is set aside, and what no honest solver needs."""

import pytest

from pipeline.task.ground import Ground, survey
from pipeline.task.screen import MAX_FILE_BYTES, MAX_FILES, screen

FILES = {
    "README.md": b"# Jam\n",
    "pyproject.toml": b"[project]\n",
    "setup.cfg": b"[metadata]\n",
    "src/jam/__init__.py": b"",
    "src/jam/core.py": b"",
    "src/jam/checks/__init__.py": b"",
    "src/jam/checks/test_core.py": b"",
    "src/jam/data/words.dat": b"a",
    "src/jam/big.py": b"#" * MAX_FILE_BYTES,
    "tests/conftest.py": b"",
    "tests/helper.py": b"",
    "tests/test_core.py": b"",
    "unit/test_more.py": b"",
    "docs/index.rst": b"",
    "docs/guide.rst": b"",
}
DELETED = ("src/jam/core.py", "docs/guide.rst")
INSTALLED = ("pytest", "sortedcontainers", "jam-1.0.dist-info", "regrow.pth", "__pycache__")


@pytest.fixture(scope="module")
def ground() -> Ground:
    return survey(FILES, import_roots=("src",), installed=INSTALLED, project="Jam", deleted=DELETED)


KEPT: dict[str, bytes | None] = {
    "src/jam/core.py": b"def jam(): ...\n",
    "src/jam/new.py": b"",
    "src/jam/json.py": b"",
    "src/jam/sub/__init__.py": b"",
    "src/jam/core/__init__.py": b"",
    "src/jam/py.typed": b"",
    "src/jam/more.dat": b"b",
    "src/jam/words.json": b"{}",
    "src/jam/data/words.dat": None,
    "src/jam/big.py": b"#" * (MAX_FILE_BYTES + 9),
    "src/jelly.py": b"",
    "attempt.py": b"print(1)\n",
    "test.py": b"print(1)\n",
    "docs/jelly.md": b"",
    "docs/guide.rst": b"x",
    "CHANGES.md": b"",
    "unit/data/json.py": b"",
    "json/notes.md": b"",
    "src/jam/Makefile/a.py": b"",
}


@pytest.mark.parametrize("path", KEPT)
def test_what_an_honest_solver_writes_is_kept(ground: Ground, path: str):
    screened = screen({path: KEPT[path]}, {}, ground=ground)
    assert screened.kept == {path: KEPT[path]}
    assert (screened.dropped, screened.refused) == ((), ())


DROPPED: dict[str, tuple[bytes | None, str]] = {
    "tests/test_core.py": (b"x", "is below tests, a folder of tests"),
    "tests/test_new.py": (b"x", "is below tests, a folder of tests"),
    "tests/data/pic.png": (b"\0", "is below tests, a folder of tests"),
    "tests/conftest.py": (None, "is below tests, a folder of tests"),
    "tests/sitecustomize.py": (b"", "is below tests, a folder of tests"),
    "test_core.py": (b"x", "is a test"),
    "src/jam/test_new.py": (b"x", "is a test"),
    "conftest.py": (b"x", "configures the tests"),
    "src/jam/conftest.py": (b"x", "configures the tests"),
    "pyproject.toml": (b"[tool.pytest.ini_options]\n", "configures the tests"),
    "setup.cfg": (None, "configures the tests"),
    "setup.py": (b"", "configures the package"),
    "tox.ini": (b"[tox]\n", "configures the tests"),
    "requirements-dev.txt": (b"", "is packaging"),
    "MANIFEST.in": (b"", "is packaging"),
    ".github/workflows/ci.yml": (b"", "is below .github, which no source is"),
    "htmlcov/index.html": (b"", "is below htmlcov, which no source is"),
    "venv/lib/python3.11/site-packages/a.pth": (b"", "is below venv, which no source is"),
    "jam.egg-info/PKG-INFO": (b"", "is the metadata of an installed package"),
    "src/Jam.egg-info/entry_points.txt": (b"", "is the metadata of an installed package"),
    "src/jam/checks/__init__.py": (None, "makes a package of test modules"),
    "profile.py": (b"", "would stand in for the module 'profile'"),
    "shot.png": (b"\x89PNG", "is of a kind (.png) that the repository does not hold"),
    "README.md": (b"# Jelly\n", "is no part of a package, and the Deletion left it alone"),
    "docs/index.rst": (None, "is no part of a package, and the Deletion left it alone"),
    "notes": (b"", "is of a kind (no suffix) that the repository does not hold"),
    "docs/shot.dat": (b"\0", "holds a NUL byte"),
    ".coverage": (b"SQLite\0", "holds a NUL byte"),
    "run.log": (b"x" * (MAX_FILE_BYTES + 1), "holds 1048577 bytes, expected at most 1048576"),
}


@pytest.mark.parametrize("path", DROPPED)
def test_what_an_honest_solver_may_have_touched_is_dropped_with_its_reason(
    ground: Ground, path: str
):
    content, reason = DROPPED[path]
    screened = screen({path: content}, {}, ground=ground)
    assert screened.dropped == ((path, reason),)
    assert (screened.kept, screened.refused) == ({}, ())


REFUSED: dict[str, tuple[bytes, str]] = {
    "all.pth": (b"import os", "runs at the start of the interpreter"),
    "src/sitecustomize.py": (b"", "runs at the start of the interpreter"),
    "src/jam/usercustomize.py": (b"", "runs at the start of the interpreter"),
    "evil.egg-info/entry_points.txt": (b"", "is the metadata of an installed package"),
    "src/evil-1.dist-info/METADATA": (b"", "is the metadata of an installed package"),
    "src/jam/core.cpython-311.pyc": (b"", "is compiled, which can stand in for any source"),
    "src/jam/core.abi3.so": (b"", "is compiled, which can stand in for any source"),
    "pytest.ini": (b"", "is a new configuration of the runner"),
    "docs/.pytest.ini": (b"", "is a new configuration of the runner"),
    "tox.ini": (b"[tox]\n[pytest]\n", "is a new configuration of the runner"),
    "src/pyproject.toml": (b"[tool.pytest.ini_options]", "is a new configuration of the runner"),
    "json.py": (b"", "would stand in for the module 'json'"),
    "src/json/__init__.py": (b"", "would stand in for the module 'json'"),
    "unit/json.py": (b"", "would stand in for the module 'json'"),
    "pytest.py": (b"", "would stand in for the module 'pytest'"),
    "_pytest/__init__.py": (b"", "would stand in for the module '_pytest'"),
    "src/hypothesis.py": (b"", "would stand in for the module 'hypothesis'"),
    "src/sortedcontainers.py": (b"", "would stand in for the module 'sortedcontainers'"),
    "helper.py": (b"", "would stand in for the module 'helper'"),
    "src/jam/core.py": (b"a = '\0'", "holds a NUL byte"),
    "src/jam/huge.py": (b"#" * 2**21, "holds 2097152 bytes, expected at most 1048576"),
}  # fmt: skip


@pytest.mark.parametrize("path", REFUSED)
def test_what_no_honest_solver_needs_is_refused_with_its_reason(ground: Ground, path: str):
    content, reason = REFUSED[path]
    screened = screen({path: content}, {}, ground=ground)
    assert screened.refused == ((path, reason),)
    assert (screened.kept, screened.dropped) == ({}, ())


@pytest.mark.parametrize(
    ("path", "oddity", "is_refused"),
    [
        ("src/jam/core.py", "is a symbolic link", True),
        ("tests", "is a symbolic link", True),
        ("tests/../src", "is no plain relative one", True),
        ("lib", "is a submodule", True),
        ("src/jam/core.so", "is binary, only text can change", True),
        ("src/jam/core.py", "is binary, only text can change", True),
        ("docs/pic.png", "is binary, only text can change", False),
        ("tests/link", "is a symbolic link", False),
    ],
)
def test_what_no_tree_of_text_holds_is_refused_unless_it_lies_about(
    ground: Ground, path: str, oddity: str, is_refused: bool
):
    screened = screen({}, {path: oddity}, ground=ground)
    assert bool(screened.refused) == is_refused
    assert bool(screened.dropped) != is_refused


def test_a_patch_of_very_many_files_is_refused(ground: Ground):
    changes = {f"src/jam/m{number:04}.py": b"" for number in range(MAX_FILES + 1)}
    screened = screen(changes, {}, ground=ground)
    assert screened.refused == (
        ("src/jam/m0000.py", f"changes {MAX_FILES + 1} files, expected at most {MAX_FILES}"),
    )
    assert screen(dict(list(changes.items())[1:]), {}, ground=ground).refused == ()


def test_a_name_that_the_snapshot_has_is_no_shadow():
    files = {**FILES, "src/json.py": b"", "src/types/__init__.py": b""}
    ground = survey(files, import_roots=("src",), installed=INSTALLED, project="jam", deleted=())
    changes: dict[str, bytes | None] = {
        "src/json.py": b"x",
        "src/json/__init__.py": b"x",
        "src/types/more.py": b"x",
    }
    assert screen(changes, {}, ground=ground).kept == changes
