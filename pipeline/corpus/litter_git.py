"""A repository of git as plain files, made without git: the same bytes from the same content."""

import zlib
from collections.abc import Mapping
from hashlib import sha1

from pipeline.corpus.scene import Scene
from pipeline.hacks.setting import solved_files

Files = dict[str, bytes]

# Of every commit; the clock of this machine must not show.
WHO = "A. Author <author@example.org> 1600000000 +0000"
CONFIG = b"[core]\n\trepositoryformatversion = 0\n\tfilemode = false\n\tbare = false\n"


def repository(*commits: tuple[str, Mapping[str, bytes]], hidden: bool = False) -> Files:
    """Return the files of a repository with some commits, each with its message and files.

    Args:
        commits: the first one first.
        hidden: the branch begins anew with the last one; objects of the others stay.
    """
    objects: Files = {}
    parent = ""
    for message, files in commits:
        last = hidden and (message, files) == commits[-1]
        parent = _commit(objects, message, files, parent="" if last else parent)
    loose = {f".git/objects/{key[:2]}/{key[2:]}": data for key, data in objects.items()}
    return {
        **loose,
        ".git/HEAD": b"ref: refs/heads/main\n",
        ".git/config": CONFIG,
        ".git/refs/heads/main": f"{parent}\n".encode(),
    }


def with_history(scene: Scene, *, hidden: bool = False) -> Files:
    """Return a repository in which the feature was deleted by the last commit."""
    setting = scene.setting
    return repository(("Import", solved_files(setting)), ("Clean up", setting.files), hidden=hidden)


def without_history(scene: Scene) -> Files:
    """Return a repository that has only ever seen the solve tree."""
    return repository(("Import", scene.setting.files))


def _commit(objects: Files, message: str, files: Mapping[str, bytes], *, parent: str) -> str:
    tree = _tree(objects, {tuple(path.split("/")): content for path, content in files.items()})
    lines = [f"tree {tree}", *([f"parent {parent}"] if parent else [])]
    text = "\n".join([*lines, f"author {WHO}", f"committer {WHO}", "", message, ""])
    return _add(objects, "commit", text.encode())


def _tree(objects: Files, files: Mapping[tuple[str, ...], bytes]) -> str:
    entries: dict[bytes, bytes] = {}
    for name in {path[0] for path in files}:
        below = {path[1:]: content for path, content in files.items() if path[0] == name}
        if () in below:
            mode, key, order = b"100644", _add(objects, "blob", below[()]), name.encode()
        else:
            # Folders are sorted as if their names ended in a slash.
            mode, key, order = b"40000", _tree(objects, below), f"{name}/".encode()
        entries[order] = mode + b" " + name.encode() + b"\0" + bytes.fromhex(key)
    return _add(objects, "tree", b"".join(entries[order] for order in sorted(entries)))


def _add(objects: Files, kind: str, content: bytes) -> str:
    data = f"{kind} {len(content)}\0".encode() + content
    key = sha1(data, usedforsecurity=False).hexdigest()
    objects[key] = zlib.compress(data)
    return key
