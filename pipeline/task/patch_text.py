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
MODE_DIGITS = 6
FILE_MODES = frozenset({"100644", "100755"})
ODD_MODES = {"120000": "is a symbolic link", "160000": "is a submodule"}
MODE_LINES = ("old mode ", "new mode ", "new file mode ", "deleted file mode ", "index ")
BINARY_LINES = ("GIT binary patch", "Binary files ")
REFUSED = {
    "similarity ": "renames or copies a file; expected a deletion and an addition",
    "dissimilarity ": "rewrites a file; expected plain hunks",
    "rename ": "renames a file; expected a deletion and an addition",
    "copy ": "copies a file; expected an addition",
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

    # Relative, `/` between parts, nothing that leads out of the tree, unless that is the oddity.
    path: str
    kind: ChangeKind
    hunks: tuple[Hunk, ...]
    # Why no tree of text files can hold it: `is a symbolic link`; empty for what one can.
    oddity: str = ""


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
    parsed = tuple(_parse_section(section) for section in sections)
    # Git removes a file before it puts a link in its place.
    odd = {file.path for file in parsed if file.oddity}
    files = tuple(file for file in parsed if file.oddity or file.path not in odd)
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
    if reason := _leads_out(path):
        raise PatchError(f"path {path!r} {reason}")
    return path


def _leads_out(path: str) -> str:
    parts = path.split("/")
    if not {"", ".", ".."}.isdisjoint(parts) or "\0" in path:
        return "is no plain relative one"
    return "is git's own" if ".git" in (part.lower() for part in parts) else ""


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
    path = _title_path(title)
    if oddity := _leads_out(path) or _oddity(header[1:]):
        return FilePatch(path=path, kind="change", hunks=(), oddity=oddity)
    lines = [line.removesuffix("\n") for line in header[1:] if line.strip()]
    # That a file is executable is no part of a tree.
    kind = _kind(path, [line for line in lines if not line.startswith(("old mode ", "new mode "))])
    if kind == "change" and not hunks and "old" not in (line.partition(" ")[0] for line in lines):
        raise PatchError(f"{path}: no hunk")
    parsed = (_parse_hunk(f"{path}, hunk {number}", hunk) for number, hunk in enumerate(hunks, 1))
    return FilePatch(path=path, kind=kind, hunks=tuple(parsed))


def _oddity(header: list[str]) -> str:
    """Return what the header says that no tree of text files can hold; else empty."""
    for line in header:
        if line.startswith(BINARY_LINES):
            return "is binary, only text can change"
        mode = line.split()[-1] if line.startswith(MODE_LINES) else ""
        if len(mode) == MODE_DIGITS and mode.isdigit() and mode not in FILE_MODES:
            return ODD_MODES.get(mode, f"has the mode {mode}, expected {sorted(FILE_MODES)}")
    return ""


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
