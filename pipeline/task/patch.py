"""Turn two trees into a patch, and a tree with a patch into the changed files."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from fnmatch import fnmatchcase
from functools import lru_cache

from pipeline.task.patch_text import (
    FilePatch,
    PatchError,
    check_path,
    parse_patch,
    split_lines,
)

__all__ = [
    "PatchError",
    "PatchRead",
    "apply_patch",
    "is_protected",
    "make_patch",
    "num_removed_lines",
    "patch_paths",
    "quoted_name",
    "read_patch",
]

NUM_CONTEXT = 3
NO_NEWLINE = "\\ No newline at end of file\n"
QUOTES = {'"': '\\"', "\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}

TEST_FOLDERS = frozenset({"test", "tests", "testing"})
PROTECTED_NAMES = {
    "test_*.py": "is a test",
    "*_test.py": "is a test",
    "tests.py": "is a test",
    "conftest.py": "configures the tests",
    "pytest.ini": "configures the tests",
    ".pytest.ini": "configures the tests",
    "pytest.toml": "configures the tests",
    ".pytest.toml": "configures the tests",
    "tox.ini": "configures the tests",
    "setup.cfg": "configures the tests",
    "pyproject.toml": "configures the tests",
    "setup.py": "configures the package",
    "noxfile.py": "configures the tests",
    ".coveragerc": "configures the tests",
    "*.pth": "runs at the start of the interpreter",
    "sitecustomize.py": "runs at the start of the interpreter",
    "usercustomize.py": "runs at the start of the interpreter",
    "*.dist-info": "is the metadata of an installed package",
    "*.egg-info": "is the metadata of an installed package",
    "__pycache__": "is bytecode, which can stand in for any source",
    "*.py[co]": "is bytecode, which can stand in for any source",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchRead:
    """What a patch comes to on a tree.

    Example: `PatchRead(changes={"a.py": b"x"}, oddities={"b": "is a symbolic link"})`.
    """

    # New content by path, None for a deleted file.
    changes: dict[str, bytes | None]
    # Why a tree of text files cannot hold it, by path as the patch names it.
    oddities: dict[str, str]


def make_patch(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> str:
    """Return the git-style unified diff from one tree to another, in order of paths.

    Modes are not part of a tree: added files are plain.

    Raises:
        ValueError: a path leads out of the tree, or a changed file is not UTF-8.
    """
    changed = sorted(
        path for path in before.keys() | after.keys() if before.get(path) != after.get(path)
    )
    return "".join(
        line for path in changed for line in _section(path, before.get(path), after.get(path))
    )


def apply_patch(tree: Mapping[str, bytes], patch: str) -> dict[str, bytes | None]:
    """Return the new content of each file that a patch touches, None for a deleted one.

    Context must match exactly. A hunk that is not where its header says is put where its old
    lines stand, if that is one place only. Whether a path runs through a symbolic link is for
    the caller to see.

    Raises:
        PatchError: the patch is malformed or does not fit; nothing of it is applied.
    """
    read = read_patch(tree, patch)
    for path, oddity in read.oddities.items():
        raise PatchError(f"path {path!r} {oddity}")
    return read.changes


def read_patch(tree: Mapping[str, bytes], patch: str) -> PatchRead:
    """Return what a patch does to a tree, and apart from it what no tree can hold.

    Raises:
        PatchError: the patch is malformed or does not fit.
    """
    files = parse_patch(patch)
    plain = (file for file in files if not file.oddity)
    return PatchRead(
        changes={file.path: _changed(tree.get(file.path), file) for file in plain},
        oddities={file.path: file.oddity for file in files if file.oddity},
    )


def patch_paths(patch: str) -> tuple[str, ...]:
    """Return the paths that a patch touches, in its order."""
    return tuple(file.path for file in parse_patch(patch))


def num_removed_lines(patch: str) -> int:
    """Return how many lines a patch removes."""
    hunks = (hunk for file in parse_patch(patch) for hunk in file.hunks)
    return sum(sign == "-" for hunk in hunks for sign, _ in hunk.lines)


@lru_cache(maxsize=2**16)
def is_protected(path: str) -> str:
    """Return why a solver's patch may not change a path, or the empty string if it may.

    Example: `is_protected("src/tests/data.json")` is `"is below tests, a folder of tests"`.
    """
    *folders, name = path.split("/")
    for folder in folders:
        if folder.lower() in TEST_FOLDERS:
            return f"is below {folder}, a folder of tests"
    for part in (*folders, name):
        for pattern, reason in PROTECTED_NAMES.items():
            if fnmatchcase(part, pattern):
                return reason
    return ""


def quoted_name(name: str) -> str:
    """Return a name as git writes it: in quotes when it holds quotes or control characters."""
    escaped = "".join(
        QUOTES.get(char, f"\\{ord(char):03o}" if ord(char) < ord(" ") else char) for char in name
    )
    return name if escaped == name else f'"{escaped}"'


def _section(path: str, before: bytes | None, after: bytes | None) -> Iterator[str]:
    old_name, new_name = quoted_name(f"a/{check_path(path)}"), quoted_name(f"b/{path}")
    yield f"diff --git {old_name} {new_name}\n"
    if before is None:
        yield "new file mode 100644\n"
    if after is None:
        yield "deleted file mode 100644\n"
    old, new = _lines(path, before), _lines(path, after)
    if old or new:
        yield f"--- {_titled(old_name if before is not None else '/dev/null')}\n"
        yield f"+++ {_titled(new_name if after is not None else '/dev/null')}\n"
    yield from _hunks(old, new)


def _titled(name: str) -> str:
    # As git does: a tab shows where an unquoted name with blanks ends.
    return f"{name}\t" if " " in name and not name.startswith('"') else name


def _lines(path: str, content: bytes | None) -> list[str]:
    try:
        return split_lines((content or b"").decode())
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 ({error.reason} at byte {error.start})") from error


def _hunks(old: list[str], new: list[str]) -> Iterator[str]:
    for group in SequenceMatcher(None, old, new).get_grouped_opcodes(NUM_CONTEXT):
        (_, old_first, _, new_first, _), (_, _, old_end, _, new_end) = group[0], group[-1]
        yield f"@@ -{_span(old_first, old_end)} +{_span(new_first, new_end)} @@\n"
        for tag, old_from, old_to, new_from, new_to in group:
            if tag == "equal":
                yield from _signed(" ", old[old_from:old_to])
            else:
                yield from _signed("-", old[old_from:old_to])
                yield from _signed("+", new[new_from:new_to])


def _span(first: int, end: int) -> str:
    """Return `first,count` as diff counts: from 1, and from the line before when there is none."""
    count = end - first
    return f"{first + 1 if count else first},{count}"


def _signed(sign: str, lines: list[str]) -> Iterator[str]:
    for line in lines:
        yield f"{sign}{line}" if line.endswith("\n") else f"{sign}{line}\n{NO_NEWLINE}"


def _changed(content: bytes | None, file: FilePatch) -> bytes | None:
    if file.kind == "add" and content is not None:
        raise PatchError(f"{file.path}: is there, expected no such file")
    if file.kind != "add" and content is None:
        raise PatchError(f"{file.path}: no such file")
    result = _apply(content or b"", file)
    if file.kind == "delete" and result:
        raise PatchError(f"{file.path}: {len(result)} bytes left, expected an empty file to delete")
    return None if file.kind == "delete" else result


def _apply(content: bytes, file: FilePatch) -> bytes:
    # Bytes that are not UTF-8 may stand in lines that the patch does not touch.
    old = split_lines(content.decode("utf-8", "surrogateescape"))
    new: list[str] = []
    done = shift = 0
    for number, hunk in enumerate(file.hunks, 1):
        expected = hunk.old_start - bool(hunk.old) + shift
        place = _place(old, hunk.old, expected=expected, start=done)
        if isinstance(place, str):
            raise PatchError(f"{file.path}, hunk {number}: {place}")
        new += old[done:place] + hunk.new
        done, shift = place + len(hunk.old), shift + place - expected
    new += old[done:]
    if not all(line.endswith("\n") for line in new[:-1]):
        raise PatchError(f"{file.path}: a line without newline is not the last one")
    return "".join(new).encode("utf-8", "surrogateescape")


def _place(lines: list[str], wanted: list[str], *, expected: int, start: int) -> int | str:
    """Return the index from `start` on where the wanted lines stand, or why there is none."""
    last = len(lines) - len(wanted)
    if start <= expected <= last and lines[expected : expected + len(wanted)] == wanted:
        return expected
    if not wanted:
        return f"inserts after line {expected} of {len(lines)}"
    places = [
        index
        for index in range(start, last + 1)
        if lines[index] == wanted[0] and lines[index : index + len(wanted)] == wanted
    ]
    if not places:
        return f"no place has its {len(wanted)} old lines, first {wanted[0]!r}"
    return places[0] if len(places) == 1 else f"its old lines stand at {len(places)} places"
