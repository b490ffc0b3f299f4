"""What is read of a folder that an agent worked in, and the patch that it comes to."""

import os
from pathlib import Path

import pytest

from pipeline.task import work_tree
from pipeline.task.patch import read_patch
from pipeline.task.work_tree import WorkTree, patch_between, read_work_tree


def write(folder: Path, files: dict[str, bytes]) -> None:
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)


def test_files_are_read_and_leftovers_are_not(tmp_path: Path):
    files = {"a.py": b"x", "b/c.py": b"\xff", "b/.env": b"", "odd\udce9": b"y"}
    leftovers = {"b/__pycache__/c.pyc": b"", ".git/config": b"", ".pytest_cache/v/a": b""}
    write(tmp_path, {**files, **leftovers})
    assert read_work_tree(tmp_path) == WorkTree(files=files, odd={})


def test_links_pipes_and_too_much_are_told_and_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(work_tree, "MAX_TREE_BYTES", 10)
    (tmp_path / "secret").symlink_to("/etc/passwd")
    (tmp_path / "folder").symlink_to("/etc")
    os.mkfifo(tmp_path / "pipe")
    write(tmp_path, {"large": b"x" * 11, "small": b"x" * 9})
    found = read_work_tree(tmp_path)
    assert found.files == {"small": b"x" * 9}
    assert found.odd == {
        "secret": "120000 /etc/passwd",
        "folder": "120000 /etc",
        "pipe": "010000",
        "large": "binary 11",
    }


def test_the_patch_of_a_folder_names_what_no_text_can_hold():
    before = WorkTree(
        files={"a.py": b"1\n", "gone.py": b"", "was.py": b"1\n", "pic": b"\xff"},
        odd={"link": "120000 a.py", "old": "120000 a.py"},
    )
    after = WorkTree(
        files={"a.py": b"2\n", "new.py": b"3\n", "pic": b"\xfe", "mus\udce9\n": b"x\n"},
        odd={"link": "120000 a.py", "other": "120000 /etc", "was.py": "120000 a.py", "p": "010000"},
    )
    read = read_patch(before.files, patch_between(before, after))
    assert read.changes == {
        "a.py": b"2\n",
        "gone.py": None,
        "new.py": b"3\n",
        "mus\udce9\n": b"x\n",
    }
    assert read.oddities == {
        "other": "is a symbolic link",
        "was.py": "is a symbolic link",
        "p": "has the mode 010000, expected ['100644', '100755']",
        "pic": "is binary, only text can change",
    }


def test_a_folder_that_nobody_touched_is_the_empty_patch():
    tree = WorkTree(files={"a": b"\xff", "b": b"1"}, odd={"c": "120000 x"})
    assert patch_between(tree, tree) == ""


def test_a_path_that_is_gits_own_is_named_and_not_applied():
    after = WorkTree(files={".GIT/config": b"[core]\n"}, odd={})
    read = read_patch({}, patch_between(WorkTree(files={}, odd={}), after))
    assert (read.changes, read.oddities) == ({}, {".GIT/config": "is git's own"})


def test_a_patch_of_very_many_files_ends():
    files = {f"f{number}": b"x\n" for number in range(work_tree.MAX_CHANGES + 9)}
    patch = patch_between(WorkTree(files={}, odd={}), WorkTree(files=files, odd={}))
    assert len(read_patch({}, patch).changes) == work_tree.MAX_CHANGES
