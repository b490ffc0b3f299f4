"""Parse the text of a git-style unified diff into records, refusing what a tree of files lacks."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from statistics import mode
from typing import Literal

ChangeKind = Literal["add", "delete", "change"]

SECTION = "diff --git "
# Python refuses to read numbers of thousands of digits, and no file has a billion lines.
HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
QUOTED_PAIR = re.compile(r'("(?:[^"\\]|\\.)*") ("(?:[^"\\]|\\.)*")')
ESCAPE = re.compile(rb"\\([0-3][0-7]{2}|.)", re.DOTALL)
ESCAPES = {
    b"a": b"\a",
    b"b": b"\b",
    b"t": b"\t",
    b"n": b"\n",
    b"v": b"\v",
    b"f": b"\f",
    b"r": b"\r",
}
# Surrogates, but for those that stand for bytes (`surrogateescape`).
UNENCODABLE = re.compile("[\ud800-\udc7f\udd00-\udfff]")
SIGNS = frozenset(" -+")
FILE_MODES = frozenset({"100644", "100755"})
REFUSED = {
    "old mode ": "changes a file mode; only contents can change",
    "new mode ": "changes a file mode; only contents can change",
    "similarity ": "renames or copies a file; expected a deletion and an addition",
    "dissimilarity ": "rewrites a file; expected plain hunks",
    "rename ": "renames a file; expected a deletion and an addition",
    "copy ": "copies a file; expected an addition",
    "GIT binary patch": "changes a binary file; only text can change",
    "Binary files ": "changes a binary file; only text can change",
}


class PatchError(ValueError):
    """A patch is malformed or does not fit; one line with the file and the hunk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunk:
    r"""One stretch of changed lines.

    Example: `Hunk(old_start=3, lines=((" ", "a\n"), ("-", "b\n")))`.
    """

    # Number of the first old line, from 1; the line before when there is no old line.
    old_start: int
    # (` `, `-` or `+`; the line with its newline, if it has one).
    lines: tuple[tuple[str, str], ...]

    @property
    def old(self) -> list[str]:
        """The lines as they are before."""
        return [line for sign, line in self.lines if sign != "+"]

    @property
    def new(self) -> list[str]:
        """The lines as they are after."""
        return [line for sign, line in self.lines if sign != "-"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePatch:
    """What a patch does to one file.

    Example: `FilePatch(path="src/a.py", kind="change", hunks=(Hunk(...),))`.
    """

    # Relative, `/` between parts, nothing that leads out of the tree.
    path: str
    kind: ChangeKind
    hunks: tuple[Hunk, ...]


def parse_patch(patch: str) -> tuple[FilePatch, ...]:
    """Return what a patch does, file by file.

    Raises:
        PatchError: it is no git-style diff of text files, or names a file twice.
    """
    text = patch if patch.endswith("\n") else f"{patch}\n"
    if unencodable := UNENCODABLE.search(text):
        raise PatchError(f"holds {unencodable[0]!r}, expected text that UTF-8 can hold")
    preamble, *sections = _split_before(split_lines(text), lambda line: line.startswith(SECTION))
    if garbage := "".join(preamble).strip():
        raise PatchError(f"starts with {garbage[:40]!r}, expected {SECTION!r}")
    files = tuple(_parse_section(section) for section in sections)
    paths = [file.path for file in files]
    if len(set(paths)) < len(paths):
        raise PatchError(f"{mode(paths)}: changed twice, expected one section a file")
    return files


def split_lines(text: str) -> list[str]:
    r"""Split at `\n` alone, newlines kept; `str.splitlines` also splits at `\f` and others."""
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def check_path(path: str) -> str:
    """Return a path that stays in its tree.

    Raises:
        PatchError: it is absolute, empty, not normal, or leads into `..` or `.git`.
    """
    parts = path.split("/")
    if not {"", ".", ".."}.isdisjoint(parts) or "\0" in path:
        raise PatchError(f"path {path!r}, expected a plain relative one")
    if ".git" in (part.lower() for part in parts):
        raise PatchError(f"path {path!r} is git's own")
    return path


def _split_before(lines: list[str], starts: Callable[[str], bool]) -> list[list[str]]:
    """Return the lines before the first start, then a list for each start."""
    groups: list[list[str]] = [[]]
    for line in lines:
        if starts(line):
            groups.append([])
        groups[-1].append(line)
    return groups


def _parse_section(section: list[str]) -> FilePatch:
    header, *hunks = _split_before(section, lambda line: line.startswith("@@"))
    title = header[0].removeprefix(SECTION).removesuffix("\n")
    for line in header[1:]:
        for start, reason in REFUSED.items():
            if line.startswith(start):
                raise PatchError(f"{title}: {reason}")
    path = check_path(_title_path(title))
    kind = _kind(path, [line.removesuffix("\n") for line in header[1:] if line.strip()])
    if kind == "change" and not hunks:
        raise PatchError(f"{path}: no hunk")
    parsed = (_parse_hunk(f"{path}, hunk {number}", hunk) for number, hunk in enumerate(hunks, 1))
    return FilePatch(path=path, kind=kind, hunks=tuple(parsed))


def _title_path(title: str) -> str:
    """Return NAME of `a/NAME b/NAME`, quoted or not."""
    if pair := QUOTED_PAIR.fullmatch(title):
        old, new = _unquote(pair[1]), _unquote(pair[2])
    else:
        old, new = title[: len(title) // 2], title[len(title) // 2 + 1 :]
    if old[:2] != "a/" or new[:2] != "b/" or old[2:] != new[2:]:
        raise PatchError(f"{title}: expected one name as `a/NAME b/NAME`")
    return old[2:]


def _kind(path: str, header: list[str]) -> ChangeKind:
    lines = {line.partition(" ")[0]: line for line in header}
    if unknown := lines.keys() - {"index", "new", "deleted", "---", "+++"}:
        raise PatchError(f"{path}: unexpected header {lines[min(unknown)]!r}")
    kind: ChangeKind = "add" if "new" in lines else "delete" if "deleted" in lines else "change"
    for line in header:
        mode = line.rpartition(" ")[2]
        if mode.isdigit() and mode not in FILE_MODES:
            raise PatchError(f"{path}: file mode {mode}, expected one of {sorted(FILE_MODES)}")
    expected = {
        "add": ("/dev/null", f"b/{path}"),
        "delete": (f"a/{path}", "/dev/null"),
        "change": (f"a/{path}", f"b/{path}"),
    }[kind]
    names = tuple(_file_name(lines[word]) for word in ("---", "+++") if word in lines)
    if names and names != expected:
        raise PatchError(f"{path}: `---` and `+++` name {names}, expected {expected}")
    return kind


def _file_name(line: str) -> str:
    name = line.partition(" ")[2]
    # Git ends a name that holds spaces with a tab; a name that holds a tab is quoted.
    return _unquote(name) if name.startswith('"') else name.partition("\t")[0]


def _unquote(name: str) -> str:
    """Undo C's escapes; an octal one is a byte of UTF-8."""
    raw = name.encode("utf-8", "surrogateescape")[1:-1]
    return ESCAPE.sub(_unescape, raw).decode("utf-8", "surrogateescape")


def _unescape(match: re.Match[bytes]) -> bytes:
    code = match[1]
    if not code.isdigit():
        return ESCAPES.get(code, code)
    if len(code) == 1:
        raise PatchError(f"a name holds \\{code.decode()}, expected three octal digits")
    return bytes([int(code, 8)])


def _parse_hunk(place: str, hunk: list[str]) -> Hunk:
    header = HUNK.match(hunk[0])
    if not header:
        raise PatchError(f"{place}: {hunk[0][:80]!r}, expected `@@ -first,count +first,count @@`")
    num_old, num_new = (int(count) if count else 1 for count in header.group(2, 4))
    lines: list[tuple[str, str]] = []
    for line, following in zip(hunk[1:], [*hunk[2:], ""], strict=True):
        if line.startswith("\\"):
            continue
        # Some editors strip the blank from an empty line of context.
        sign, text = (line[0], line[1:]) if line != "\n" else (" ", line)
        if sign not in SIGNS:
            raise PatchError(f"{place}: line {line!r}, expected ' ', '-' or '+' first")
        lines.append((sign, text.removesuffix("\n") if following.startswith("\\") else text))
    parsed = Hunk(old_start=int(header[1]), lines=tuple(lines))
    if (found := (len(parsed.old), len(parsed.new))) != (num_old, num_new):
        raise PatchError(f"{place}: {found} old and new lines, expected {(num_old, num_new)}")
    return parsed
