"""A manifest entry is proposed by trying, and only when the suite is green and steady with it."""

import io
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from pipeline.manifest import load_manifest
from pipeline.proposal.licence_texts import SHORT
from tests.pipeline.commands.conftest import write_tree
from tests.pipeline.package_index import Offer, sdist, serve, sha256, wheel

AddRepo = Callable[..., subprocess.CompletedProcess[str]]

MIT = "Copyright (c) 2020 Ann\n" + SHORT["MIT"][0].replace("…", "the authors")

# Its options measure coverage with a plugin that is not there, a test module imports what no
# metadata names, one test fails, and one fails with every hash seed but the first.
TINY = {
    "PKG-INFO": (
        "Metadata-Version: 2.4\nName: tiny\nVersion: 1.0\nSummary: A tiny\n library\n"
        "License-Expression: MIT\n"
    ),
    "LICENSE": MIT,
    "pytest.ini": "[pytest]\naddopts = --cov=tiny\n",
    "tiny.py": "def one():\n    return 1\n",
    "tests/test_tiny.py": """\
import os

import helper
import pytest

import tiny


@pytest.mark.parametrize("number", range(30))
def test_one(number):
    assert tiny.one() == helper.NUMBER


def test_broken():
    raise OSError("no network")


def test_wavering():
    assert os.environ["PYTHONHASHSEED"] == "0"


@pytest.mark.parametrize("number", [1, 2])
def test_half(number):
    assert number == 1
""",
}
# Nothing of it works.
RED = TINY | {
    "tests/test_tiny.py": "def test_a():\n    assert 0\n\n\ndef test_b():\n    assert 0\n"
}
# No text that is known, and tests that need what the index has not.
UNCLEAR = {
    "LICENSE": "GNU General Public License " * 20,
    "pyproject.toml": '[dependency-groups]\ntest = ["absent"]\n',
}


def installed_wheel(name: str) -> Offer:
    """Offer a pure Python distribution of this environment, as a wheel."""
    found = distribution(name)
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as archive:
        for file in found.files or ():
            if file.suffix != ".pyc" and ".." not in file.parts:
                archive.write(file.locate(), str(file))
    spelled = canonicalize_name(found.metadata["Name"]).replace("-", "_")
    return Offer(f"{spelled}-{found.version}-py3-none-any.whl", raw.getvalue())


def release(version: str, files: dict[str, str], **offer: str) -> Offer:
    top = f"tiny-{version}"
    return Offer(f"{top}.tar.gz", sdist(files, top=top), **offer)


OFFERS = (
    release("1.0", TINY),
    release("2.0", RED),
    release("3.0", TINY | UNCLEAR),
    release("4.0", {"LICENSE": MIT, "tiny.py": ""}),
    Offer("helper-1.0-py3-none-any.whl", wheel("helper", "1.0", source="NUMBER = 1\n")),
)


@pytest.fixture(scope="module")
def add_repo(environ: dict[str, str]) -> Iterator[AddRepo]:
    """Run `regrow add-repo` with an index that has pytest and a few packages."""
    pytests = map(installed_wheel, ("pytest", "pluggy", "iniconfig", "packaging", "pygments"))
    with serve(*OFFERS, *pytests) as index:

        def run(*arguments: object) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [sys.executable, "-m", "pipeline", "add-repo", *map(str, arguments)],
                env={**environ, "PIP_INDEX_URL": index},
                capture_output=True,
                text=True,
                check=False,
                timeout=240,
            )

        yield run


def test_a_release_becomes_an_entry_that_says_why_it_is_as_it_is(add_repo: AddRepo):
    done = add_repo("tiny==1.0")
    assert done.returncode == 0, done.stderr
    block, _, wall_s = done.stdout.rpartition("wall_s = ")
    assert float(wall_s) > 0
    assert block == (
        "# A tiny library\n"
        "[[repo]]\n"
        'name = "tiny"\n'
        'sdist = "tiny==1.0"\n'
        f'sha256 = "{sha256(OFFERS[0].data)}"\n'
        'licence = "MIT"\n'
        'python = "3.11"\n'
        "\n"
        "[repo.install]\n"
        "# With what the suite asks for and nothing names.\n"
        'packages = ["helper"]\n'
        "exclude_newer = 2024-05-06\n"
        "\n"
        "[repo.test]\n"
        "# Its options measure coverage.\n"
        "args = [\n"
        '    "-o", "addopts=",\n'
        "    # Differs from run to run.\n"
        '    "--deselect", "tests/test_tiny.py::test_wavering",\n'
        "    # Fails: AssertionError.\n"
        '    "--deselect", "tests/test_tiny.py::test_half[2]",\n'
        "    # Fails: OSError.\n"
        '    "--deselect", "tests/test_tiny.py::test_broken",\n'
        "]\n"
    )


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A git repository with two commits."""
    folder = tmp_path_factory.mktemp("git") / "Tiny.Tools"
    suite = "import tiny\n\n\ndef test_one():\n    assert tiny.one() == 1\n"
    write_tree(folder, {"LICENSE": MIT, "tiny.py": TINY["tiny.py"], "tests.py": "broken"})
    _git(folder, "init", "-q")
    _git(folder, "add", ".")
    _git(folder, "commit", "-qm", "broken")
    (folder / "tests.py").write_text(suite)
    _git(folder, "commit", "-qam", "works")
    return folder


def _git(folder: Path, *command: str) -> str:
    day = {"GIT_AUTHOR_DATE": "2024-05-06T12:00:00Z", "GIT_COMMITTER_DATE": "2024-05-06T12:00:00Z"}
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@t", *command]
    done = subprocess.run(
        git, cwd=folder, env={**os.environ, **day}, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def test_the_head_of_a_repository_is_pinned_and_kept_in_a_manifest(
    add_repo: AddRepo, repository: Path, tmp_path: Path
):
    manifest = tmp_path / "mine.toml"
    done = add_repo(repository, "--append", manifest, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    [repo] = load_manifest(manifest)
    assert (told["name"], told["num_passing"], told["asides"]) == ("tiny-tools", 1, [])
    assert told["block"] == manifest.read_text()
    assert (repo.source.kind, repo.source.location) == ("git", str(repository))
    assert repo.source.pin == _git(repository, "rev-parse", "HEAD")
    assert repo.install.exclude_newer == "2024-05-06"
    # pytest does not look there by itself.
    assert repo.test.args == ("tests.py",)
    again = add_repo(f"file://{repository}", "--append", manifest)
    assert again.returncode == 2
    assert (
        again.stderr == f"error: {manifest}: 'tiny-tools' is there already, expected a new name\n"
    )


BAD = {
    "a name alone": (("tiny",), "tiny: expected NAME==VERSION, or the URL or folder of a git"),
    "another project": (("absent==1.0",), "no_such_version: absent: the index has no such"),
    "another version": (("tiny==9.0",), "no_such_version: tiny==9.0: the index has no sdist"),
    "no repository": (("file:///nonexistent",), "unreachable: file:///nonexistent: "),
    "a licence that is not allowed": (
        ("tiny==1.0", "--licence", "GPL-3.0-only"),
        "--licence GPL-3.0-only: expected MIT, ",
    ),
    "no version": (("tiny==1.0", "--python", "3"), "--python 3: expected a version like 3.11"),
    "no requirement": (("tiny==1.0", "--package", "a b"), "--package a b: expected a requirement"),
    "an unclear licence": (("tiny==3.0",), "LICENSE: not the text of a permissive licence"),
    "a red suite": (("tiny==2.0",), "2 of 2 tests and 0 files are broken"),
    "no suite": (("tiny==4.0",), "pytest collected no test"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_proposed_ends_in_one_line(add_repo: AddRepo, name: str):
    arguments, said = BAD[name]
    done = add_repo(*arguments)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    [error] = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert done.stderr.endswith(f"{error}\n")
    assert said in error


def test_a_licence_that_a_person_has_read_is_not_doubted(add_repo: AddRepo):
    done = add_repo("tiny==3.0", "--licence", "mit", "--arg=-o", "--arg=addopts=", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["licence"] == "MIT"
    assert (
        "# What it names for its tests cannot be had as wheels.\n"
        'packages = ["helper", "pytest"]\n' in told["block"]
    )
    assert [it["value"] for it in told["asides"]] == [
        "tests/test_tiny.py::test_wavering",
        "tests/test_tiny.py::test_half[2]",
        "tests/test_tiny.py::test_broken",
    ]
