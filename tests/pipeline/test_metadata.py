"""What a tree says of its distribution is read and never run."""

from pathlib import Path

import pytest

from pipeline.metadata import read_project
from tests.pipeline.package_index import write_tree


def test_requires_txt_is_read_where_pkg_info_names_no_requirement(tmp_path: Path):
    text = 'six\n\n[:python_version < "3"]\nfutures\n\n[test]\nmock\n\n[test:os_name == "nt"]\nx\n'
    files = {"PKG-INFO": "Name: tiny\nVersion: 1\n", "src/tiny.egg-info/requires.txt": text}
    project = read_project(write_tree(tmp_path, files), name="other")
    assert project.name == "tiny"
    assert project.requires == ("six", 'futures; (python_version < "3")')
    [(extra, lines)] = project.extras
    assert extra == "test"
    assert lines == ('mock; extra == "test"', 'x; (os_name == "nt") and extra == "test"')


STATIC = {
    "pyproject.toml": (
        '[project]\nname = "Tiny"\nversion = "2"\ndependencies = ["six"]\n'
        '[project.optional-dependencies]\ntest = ["mock"]\n[project.scripts]\ntiny = "tiny:one"\n'
    ),
    "setup.cfg": (
        "[metadata]\nname = Tiny\nversion = 2\n[options]\ninstall_requires =\n  six\n"
        "[options.extras_require]\ntest =\n  mock\n"
        "[options.entry_points]\nconsole_scripts =\n  tiny = tiny:one\n"
    ),
    "setup.py": (
        "raise SystemExit('executed')\nfrom setuptools import setup\nREQUIRES = ['six']\n"
        "setup(name='Tiny', version='2', install_requires=REQUIRES, long_description=open('x'),\n"
        "      extras_require={'test': ['mock']},\n"
        "      entry_points={'console_scripts': ['tiny = tiny:one']})\n"
    ),
}


@pytest.mark.parametrize("file", STATIC)
def test_build_files_are_read_and_never_run(tmp_path: Path, file: str):
    project = read_project(write_tree(tmp_path, {file: STATIC[file]}), name="other")
    assert (project.name, project.version, project.requires) == ("Tiny", "2", ("six",))
    assert project.extras == (("test", ("mock",)),)
    assert project.entry_points == "[console_scripts]\ntiny = tiny:one\n\n"
    assert project.metadata == (
        "Metadata-Version: 2.1\nName: Tiny\nVersion: 2\nRequires-Dist: six\n"
    )


@pytest.mark.parametrize("name", ["--index-url", "../x", "a b", "x" * 300, ""])
def test_a_name_that_could_be_an_option_or_a_path_is_not_taken(tmp_path: Path, name: str):
    files = {"PKG-INFO": f"Name: {name}\nVersion: 1\n"}
    assert read_project(write_tree(tmp_path, files), name="tiny").name == "tiny"
