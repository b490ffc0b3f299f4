"""Names that build and installation need are found in whatever build file they stand."""

import pytest

from pipeline.language.python.build_files import find_named, find_packaged
from pipeline.language.python.file_cut import FileCut

NAMES = {"pkg.cli.main", "pkg.sub", "pkg.core.take"}
PATHS = {"src/pkg/sub", "src/pkg/about.py"}


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        ("pyproject.toml", "[project.scripts]\nx = 'pkg.cli:main'\n", "pkg.cli:main"),
        ("pyproject.toml", "[project.entry-points.p]\nx = 'pkg.core:take'\n", "pkg.core:take"),
        ("pyproject.toml", "[tool.poetry.scripts]\nx = 'pkg.cli:main'\n", "pkg.cli:main"),
        (
            "pyproject.toml",
            "[tool.setuptools]\npackages = ['pkg.sub.deep']\n",
            "pkg.sub.deep",
        ),
        ("pyproject.toml", "[tool.hatch.version]\npath = 'src/pkg/about.py'\n", "src/pkg/about.py"),
        ("pyproject.toml", "[tool.setuptools.package-data]\n'pkg.sub' = ['*']\n", "pkg.sub"),
        ("setup.cfg", "[metadata]\nversion = attr: pkg.sub.VERSION\n", "pkg.sub.VERSION"),
        ("setup.cfg", "[options]\npackages =\n  pkg\n  pkg.sub\n", "pkg.sub"),
        ("setup.py", "setup(entry_points={'x': ['y = pkg.cli:main [z]']})\n", "pkg.cli:main"),
        ("setup.py", "setup(entry_points='''\n[x]\ny=pkg.cli:main\n''')\n", "pkg.cli:main"),
    ],
)
def test_what_an_installation_needs_is_found(path: str, text: str, found: str):
    files = {path: text.encode()}
    assert find_named(files, names=NAMES, paths=PATHS) == f"{found} in {path}"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("pyproject.toml", "[project.scripts]\nx = 'pkg.cli:run'\n"),
        ("pyproject.toml", "[[tool.mypy.overrides]]\nmodule = 'pkg.sub'\n"),
        ("pyproject.toml", "[project\n"),
        ("setup.cfg", "[tool:pytest]\ntestpaths = pkg.sub\n"),
        ("setup.cfg", "x = 1\n"),
        ("setup.py", "setup(packages=['pkg', 'pkg.subway'])\n"),
        ("setup.py", "setup(\n"),
        ("README.md", "pkg.sub\n"),
    ],
)
def test_other_mentions_need_nothing(path: str, text: str):
    assert find_named({path: text.encode()}, names=NAMES, paths=PATHS) == ""


@pytest.mark.parametrize(
    ("cut", "found"),
    [
        (FileCut(path="src/pkg/cli.py", symbols=("main",)), "pkg.cli:main in setup.py"),
        (FileCut(path="src/pkg/cli.py", is_removed=True), "pkg.cli:main in setup.py"),
        (FileCut(path="src/pkg/cli.py", symbols=("other",)), ""),
    ],
)
def test_what_goes_from_files_is_looked_for_by_its_import_names(cut: FileCut, found: str):
    files = {
        "setup.py": b"setup(entry_points={'console_scripts': ['pkg = pkg.cli:main']})",
        "src/pkg/__init__.py": b"",
        "src/pkg/cli.py": b"def main(): ...",
    }
    assert find_packaged(files, [cut], import_roots=["src"]) == found
