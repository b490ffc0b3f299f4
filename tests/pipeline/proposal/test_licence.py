"""A licence is what its text says, word by word, and the metadata must not say otherwise."""

from importlib.metadata import distribution
from pathlib import Path

import pytest

from pipeline.manifest import PERMISSIVE
from pipeline.metadata import read_project
from pipeline.proposal.error import ProposalError
from pipeline.proposal.licence import find_licence
from pipeline.proposal.licence_match import recognise
from pipeline.proposal.licence_texts import SHORT
from tests.pipeline.package_index import write_tree

ROOT = Path(__file__).parents[3]


def _text(name: str) -> str:
    return SHORT[name][0].replace("…", "the authors")


MIT = f"MIT License\n\nCopyright (c) 2020 Ann\nCopyright 2021, Bob\n\n{_text('MIT')}"
BSD = f"Copyright 2020 Ann. All rights reserved.\n\n{_text('BSD-3-Clause')}"


def _installed(package: str, file: str) -> str:
    [path] = [path for path in distribution(package).files or () if path.name == file]
    return path.read_text()


@pytest.mark.parametrize("name", SHORT)
def test_each_known_text_is_recognised_and_no_other_in_it(name: str):
    assert recognise(f"Copyright (c) 2020 Ann\n\n{_text(name)}") == {name}
    assert recognise(_text(name).upper().replace("\n", "\r\n *  ")) == {name}
    assert name in PERMISSIVE


@pytest.mark.parametrize("name", SHORT)
def test_a_condition_more_makes_a_text_unknown(name: str):
    more = "The software shall be used for good, not evil."
    start, end = _text(name)[:80], _text(name)[80:]
    assert recognise(f"{_text(name)}\n{more}") == frozenset()
    assert recognise(f"{start} {more} {end}") == frozenset()
    assert recognise(f"Copyright 2020 Ann. {more}\n{_text(name)}") == frozenset()
    assert recognise(_text(name).replace("software", "software for private use", 1)) == frozenset()


@pytest.mark.parametrize(
    ("package", "file", "found"),
    [
        ("pluggy", "LICENSE", "MIT"),
        ("jinja2", "LICENSE.txt", "BSD-3-Clause"),
        ("packaging", "LICENSE.BSD", "BSD-2-Clause"),
        ("packaging", "LICENSE.APACHE", "Apache-2.0"),
        ("docker", "LICENSE", "Apache-2.0"),
    ],
)
def test_the_files_of_installed_packages_are_recognised(package: str, file: str, found: str):
    assert recognise(_installed(package, file)) == {found}


def test_one_changed_word_of_a_long_text_makes_it_unknown():
    text = (ROOT / "LICENSE").read_text()
    assert recognise(text) == {"Apache-2.0"}
    assert recognise(text.replace("royalty-free", "costly")) == frozenset()


def _find(folder: Path, files: dict[str, str], *headers: str) -> str:
    info = "\n".join(["Metadata-Version: 2.4", "Name: tiny", "Version: 1.0", *headers, "", ""])
    tree = write_tree(folder, {"PKG-INFO": info, **files})
    return find_licence(tree, read_project(tree, name="tiny"))


APACHE = (ROOT / "LICENSE").read_text()
EITHER = "This software is under the terms of either LICENSE.MIT or LICENSE.APACHE."
CLASSIFIER = "Classifier: License :: OSI Approved :: "


@pytest.mark.parametrize(
    ("files", "headers", "found"),
    [
        ({"LICENSE": MIT}, (), "MIT"),
        ({"LICENCE.txt": MIT}, ("License-Expression: MIT",), "MIT"),
        ({"COPYING": BSD}, (f"{CLASSIFIER}BSD License",), "BSD-3-Clause"),
        ({"LICENSE": MIT, "license.py": "MIT = 1\n"}, (), "MIT"),
        ({"LICENSES/MIT.txt": MIT}, (), "MIT"),
        ({"LICENSE": MIT, "LICENSE.vendored.txt": BSD}, (), "BSD-3-Clause AND MIT"),
        (
            {"LICENSE": EITHER, "LICENSE.MIT": MIT, "LICENSE.APACHE": APACHE},
            ("License-Expression: mit OR apache-2.0",),
            "MIT OR Apache-2.0",
        ),
        ({"LICENSE": MIT, "pyproject.toml": '[project]\nlicense = "MIT"\n'}, (), "MIT"),
    ],
)
def test_a_licence_is_found(tmp_path: Path, files: dict, headers: tuple[str, ...], found: str):
    assert _find(tmp_path, files, *headers) == found


@pytest.mark.parametrize(
    ("files", "headers", "said"),
    [
        ({}, ("License-Expression: MIT",), "the tree has no licence file"),
        ({"LICENSE": "GNU " * 50}, (), "LICENSE: not the text of a permissive licence"),
        ({"LICENSE": MIT, "COPYING": "GNU " * 50}, (), "COPYING: not the text"),
        ({"LICENSE": "See elsewhere."}, (), "LICENSE: no text of a permissive licence"),
        (
            {"LICENSE": MIT},
            ("License-Expression: ISC",),
            "the metadata says ISC, the licence files are MIT",
        ),
        (
            {"LICENSE": MIT},
            (f"{CLASSIFIER}GNU General Public License v3 (GPLv3)",),
            "the metadata says GNU General Public License v3 (GPLv3), the licence files are MIT",
        ),
        (
            {"LICENSE": MIT, "pyproject.toml": '[project]\nlicense = "GPL-3.0-only"\n'},
            (),
            "the metadata says GPL-3.0-only",
        ),
    ],
)
def test_what_is_unclear_is_refused_with_the_reason(
    tmp_path: Path, files: dict, headers: tuple[str, ...], said: str
):
    with pytest.raises(ProposalError) as caught:
        _find(tmp_path, files, *headers)
    assert said in str(caught.value)
