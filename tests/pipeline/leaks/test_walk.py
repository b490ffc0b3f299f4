"""Everything of a folder is looked at, or it is said that it was not."""

import os
import socket
from pathlib import Path

import pytest

from pipeline.leaks.budget import Budget, Meter, SpentError
from pipeline.leaks.walk import Entry, Root, walk


def walked(folder: Path, *masked: str, budget: Budget | None = None) -> dict[str, str | None]:
    root = Root(folder=folder, target="/seen", masked=masked)
    return {it.path: it.why for it in walk(root, Meter(budget or Budget()))}


def test_files_are_named_as_the_solver_sees_them(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c.py").touch()
    (tmp_path / ".hidden").touch()
    assert walked(tmp_path) == {"/seen/a/b/c.py": None, "/seen/.hidden": None}


def test_what_is_masked_is_not_seen(tmp_path: Path) -> None:
    for name in ("a/x", "a/y/z", "ab/x"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert walked(tmp_path, "a/y", "ab/x") == {"/seen/a/x": None}


def test_a_single_file_can_be_a_root(tmp_path: Path) -> None:
    (tmp_path / "hosts").touch()
    root = Root(folder=tmp_path / "hosts", target="/etc/hosts")
    assert list(walk(root, Meter(Budget()))) == [
        Entry(source=str(tmp_path / "hosts"), path="/etc/hosts")
    ]


def test_links_are_not_followed_wherever_they_lead(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "secret").touch()
    (inside / "out").symlink_to(outside)
    (inside / "round").symlink_to(".")
    (inside / "self").symlink_to("self")
    assert walked(inside) == {}


def test_what_is_no_file_is_told_and_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
    assert walked(tmp_path) == {"/seen/pipe": "not a file", "/seen/socket": "not a file"}


def test_a_path_that_is_too_long_for_the_system_is_told(tmp_path: Path) -> None:
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("f" * 250, dir_fd=here)
        below = os.open("f" * 250, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    assert list(walked(tmp_path).values()) == ["path too long"]


@pytest.mark.parametrize("is_flat", [True, False])
def test_many_files_end_within_the_budget(tmp_path: Path, is_flat: bool) -> None:
    for number in range(600):
        folder = tmp_path if is_flat else tmp_path / str(number)
        folder.mkdir(exist_ok=True)
        (folder / f"{number}.txt").touch()
    with pytest.raises(SpentError, match="too many files"):
        walked(tmp_path, budget=Budget(num_files=500))


def test_a_walk_ends_when_its_time_is_over(tmp_path: Path) -> None:
    for number in range(9):
        (tmp_path / str(number)).touch()
    ticks = iter(range(100))
    meter = Meter(Budget(total_s=5), clock=lambda: float(next(ticks)))
    with pytest.raises(SpentError, match="time"):
        list(walk(Root(folder=tmp_path, target="/"), meter))
