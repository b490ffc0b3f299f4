"""Read requirement files of a tree, the ones they include too."""

import re
from collections.abc import Iterator
from pathlib import Path

# Where projects keep what their tests need; the first that names anything is taken.
CANDIDATES = tuple(
    pattern.format(word=word)
    for word in ("tests", "test", "testing", "dev")
    for pattern in (
        "requirements/{word}.txt",
        "requirements/requirements-{word}.txt",
        "requirements-{word}.txt",
        "requirements_{word}.txt",
        "{word}-requirements.txt",
        "{word}_requirements.txt",
        "{word}/requirements.txt",
    )
)

OPTION = re.compile(r"(-r|--requirement|-e|--editable)(?:\s*=\s*|\s*)(.+)")


def read_requirements(tree: Path, file: str) -> list[str]:
    """Return the requirement strings of a file, path references (`.[test]`) among them.

    Hashes, constraints and other options are left out, since they speak for other machines.
    A file that is missing or outside the tree has none.
    """
    return list(_read(tree.resolve(), (tree / file).resolve(), seen=set()))


def expand_line(tree: Path, line: str, *, folder: Path) -> list[str]:
    """Return the requirements of one line, which may include another file.

    Args:
        tree: the root, which includes must not leave.
        line: without comment.
        folder: what an included file is relative to.
    """
    return list(_expand(tree.resolve(), line, folder=folder.resolve(), seen=set()))


def _read(tree: Path, path: Path, *, seen: set[Path]) -> Iterator[str]:
    if path in seen or not path.is_relative_to(tree) or not path.is_file():
        return
    seen.add(path)
    text = path.read_text(encoding="utf-8", errors="replace").replace("\\\n", " ")
    for line in text.splitlines():
        yield from _expand(tree, line, folder=path.parent, seen=seen)


def _expand(tree: Path, line: str, *, folder: Path, seen: set[Path]) -> Iterator[str]:
    line = re.sub(r"(^|\s)#.*", "", line)
    requirement = re.sub(r"\s--?[a-z].*", "", f" {line}" if line[:1] != "-" else line).strip()
    option = OPTION.fullmatch(line.strip())
    if option and option[1] in {"-r", "--requirement"}:
        yield from _read(tree, (folder / option[2].strip()).resolve(), seen=seen)
    elif option:
        yield option[2].strip()
    elif requirement and not requirement.startswith("-"):
        yield requirement
