"""Tell a project's licence from its licence files, checked against its metadata."""

import re
from collections.abc import Iterator
from email.parser import HeaderParser
from pathlib import Path

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from pipeline.manifest import PERMISSIVE
from pipeline.metadata import Project
from pipeline.proposal.error import ProposalError
from pipeline.proposal.licence_match import is_pointer, recognise
from pipeline.static_metadata import load_toml, strings, table

FILE = re.compile(r"((un)?licen[cs]e|copying)", re.IGNORECASE)
# A file `license.py` is code.
TEXT = re.compile(r"|\.(txt|md|rst|mit|bsd|apache|apache2|isc)", re.IGNORECASE)
FOLDER = re.compile(r"licen[cs]es?", re.IGNORECASE)

PREFIX = "License :: OSI Approved :: "
# What each classifier leaves open.
CLASSIFIERS = {
    "MIT License": {"MIT"},
    "MIT No Attribution License (MIT-0)": {"MIT-0"},
    "BSD License": {"BSD-2-Clause", "BSD-3-Clause", "0BSD"},
    "Apache Software License": {"Apache-2.0"},
    "ISC License (ISCL)": {"ISC"},
    "The Unlicense (Unlicense)": {"Unlicense"},
    "zlib/libpng License": {"Zlib"},
}


def find_licence(tree: Path, project: Project) -> str:
    """Return the SPDX expression that a tree's licence files and its metadata agree on.

    Raises:
        ProposalError: a file holds no known permissive text, or the metadata says otherwise.
    """
    texts = {path.relative_to(tree).as_posix(): _read(path) for path in _files(tree)}
    if not texts:
        raise ProposalError("the tree has no licence file")
    found: set[str] = set()
    for name, text in texts.items():
        ids = recognise(text)
        if not ids and not is_pointer(text):
            raise ProposalError(f"{name}: not the text of a permissive licence that is known")
        found |= ids
    if not found:
        raise ProposalError(f"{', '.join(texts)}: no text of a permissive licence")
    return _agreed(found, *_stated(tree, project))


def permissive(expression: str) -> str:
    """Return the canonical form of an SPDX expression; empty when a manifest may not have it."""
    try:
        canonical = canonicalize_license_expression(expression)
    except InvalidLicenseExpression:
        return ""
    return canonical if _parts(canonical) <= set(PERMISSIVE) else ""


def _parts(expression: str) -> set[str]:
    return set(re.findall(r"[^\s()]+", expression)) - {"AND", "OR"}


def _files(tree: Path) -> Iterator[Path]:
    """Yield the licence files at the top of a tree, and of a folder for them there."""
    folders = [path for path in tree.iterdir() if path.is_dir() and FOLDER.fullmatch(path.name)]
    inside = [path for folder in folders for path in folder.iterdir()]
    named = [path for path in tree.iterdir() if FILE.match(path.name)]
    for path in sorted(named + inside):
        if path.is_file() and (path.parent != tree or TEXT.fullmatch(path.suffix)):
            yield path


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _stated(tree: Path, project: Project) -> tuple[str, list[str]]:
    """Return the expression and the licence classifiers of the metadata; empty without them."""
    headers = HeaderParser().parsestr(project.metadata)
    inner = table(load_toml(tree / "pyproject.toml"), "project")
    licence = inner.get("license")
    expression = headers["License-Expression"] or (licence if isinstance(licence, str) else "")
    classifiers = headers.get_all("Classifier") or strings(inner.get("classifiers"))
    return expression, [
        text.removeprefix(PREFIX) for text in classifiers if text.startswith(PREFIX)
    ]


def _agreed(found: set[str], expression: str, classifiers: list[str]) -> str:
    """Return the expression, if it is of the texts that were found; else those, all of them."""
    texts = " and ".join(sorted(found))
    if expression:
        canonical = permissive(expression)
        if _parts(canonical) != found:
            raise ProposalError(f"the metadata says {expression}, the licence files are {texts}")
        return canonical
    for classifier in classifiers:
        if not CLASSIFIERS.get(classifier, set()) & found:
            raise ProposalError(f"the metadata says {classifier}, the licence files are {texts}")
    return " AND ".join(sorted(found))
