"""Read the folder that an agent worked in, and turn what it did there into a patch."""

import stat
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from pipeline.sandbox.tree import entries
from pipeline.task.patch import make_patch, quoted_name
from pipeline.task.tree import LEFTOVERS

# No more is read: an agent may have filled its disk.
MAX_TREE_BYTES = 256 * 2**20
# A patch names no more files; far fewer are refused already.
MAX_CHANGES = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkTree:
    """What lies in a folder.

    Example: `WorkTree(files={"a.py": b"x"}, odd={"b": "120000 a.py"})`.
    """

    # Content of the regular files by path, `/` between parts.
    files: dict[str, bytes]
    # What is neither file nor folder, and what is too large: git's mode (`binary` of a file), and
    # the target of a link or the size in bytes.
    odd: dict[str, str]


def read_work_tree(folder: Path) -> WorkTree:
    """Read a folder without following links, leftovers of test runs aside.

    Raises:
        OSError: a folder is closed to us, or nested deeper than a path can tell.
    """
    files: dict[str, bytes] = {}
    odd: dict[str, str] = {}
    room = MAX_TREE_BYTES
    for entry in entries(folder):
        found = Path(entry.path)
        path = found.relative_to(folder)
        status = entry.stat(follow_symlinks=False)
        if not LEFTOVERS.isdisjoint(path.parts) or stat.S_ISDIR(status.st_mode):
            continue
        if stat.S_ISLNK(status.st_mode):
            odd[path.as_posix()] = f"120000 {found.readlink()}"
        elif not stat.S_ISREG(status.st_mode):
            odd[path.as_posix()] = f"{stat.S_IFMT(status.st_mode):06o}"
        elif status.st_size > room:
            odd[path.as_posix()] = f"binary {status.st_size}"
        else:
            files[path.as_posix()] = found.read_bytes()
            room -= status.st_size
    return WorkTree(files=files, odd=odd)


def patch_between(before: WorkTree, after: WorkTree) -> str:
    """Return the diff from one folder to another; what no text can tell is named as git names it.

    A link that is gone is no change: nothing that is graded needs it.
    """
    return "".join(islice(_sections(before, after), MAX_CHANGES))


def _sections(before: WorkTree, after: WorkTree) -> Iterator[str]:
    odd = {path: what for path, what in after.odd.items() if before.odd.get(path) != what}
    plain = (before.files.keys() | after.files.keys()) - after.odd.keys()
    for path in sorted(plain | odd.keys()):
        old, new = before.files.get(path), after.files.get(path)
        if path in odd:
            yield _odd_section(path, odd[path])
        elif old != new:
            yield _plain_section(path, old, new)


def _plain_section(path: str, old: bytes | None, new: bytes | None) -> str:
    try:
        return make_patch({} if old is None else {path: old}, {} if new is None else {path: new})
    except ValueError:  # not UTF-8, or a path that the reader of the patch refuses
        return _odd_section(path, "binary")


def _odd_section(path: str, what: str) -> str:
    name = quoted_name(f"b/{path}")
    title = f"diff --git {quoted_name(f'a/{path}')} {name}\n"
    mode = what.partition(" ")[0]
    if mode == "binary":
        return f"{title}Binary files /dev/null and {name} differ\n"
    return f"{title}new file mode {mode}\n"
