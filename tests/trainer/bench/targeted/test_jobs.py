import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from pipeline.task.claims import NotMeasuredError
from trainer.bench.targeted.jobs import do_all
from trainer.bench.targeted.worker import Tell

PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Chore:
    """Work that ends in some way."""

    name: str
    how: str = "well"

    def path(self, folder: Path) -> Path:
        return folder / f"{self.name}.txt"

    def do(self, folder: Path, *, tell: Tell) -> str:
        (folder / f"{self.name}.pid").write_text(str(os.getpid()))
        tell(f"{self.name} begins")
        match self.how:
            case "refused":
                raise NotMeasuredError(f"{self.name} cannot be done")
            case "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            case "a bug":
                raise KeyError(self.name)
            case "endless":
                time.sleep(10 * PATIENCE_S)
        self.path(folder).write_text(self.name)
        return f"{self.name} ends"


def done(folder: Path, *chores: Chore) -> list[str]:
    said = StringIO()
    do_all(chores, folder, say=Console(file=said, width=80))
    return said.getvalue().splitlines()


def is_gone(folder: Path, name: str) -> bool:
    """Wait for a worker to be gone."""
    pid = int((folder / f"{name}.pid").read_text())
    give_up = time.monotonic() + PATIENCE_S
    while time.monotonic() < give_up:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        # Nobody may have reaped it, where the process that should is gone too.
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


def test_what_is_done_already_is_not_done_again(tmp_path: Path) -> None:
    Chore(name="old").path(tmp_path).write_text("kept")
    said = done(tmp_path, Chore(name="old"), Chore(name="new"))
    assert said == ["new begins", "1/1 new ends"]
    assert Chore(name="old").path(tmp_path).read_text() == "kept"


def test_work_is_done_in_other_processes_and_all_of_it(tmp_path: Path) -> None:
    names = [f"chore-{number}" for number in range(5)]
    said = done(tmp_path, *(Chore(name=name) for name in names))
    assert sorted(line.split("/5 ")[1] for line in said if "/5" in line) == [
        f"{name} ends" for name in names
    ]
    pids = {(tmp_path / f"{name}.pid").read_text() for name in names}
    assert len(pids) == 5
    assert str(os.getpid()) not in pids


@pytest.mark.parametrize(
    ("how", "line"),
    [
        ("refused", r"^bad cannot be done$"),
        ("killed", r"^bad: its process ended with SIGKILL$"),
        ("a bug", r"^bad: its process ended with status 1$"),
    ],
)
def test_one_that_fails_ends_all_in_one_line_and_leaves_no_worker(
    tmp_path: Path, how: str, line: str
) -> None:
    with pytest.raises(NotMeasuredError, match=line):
        done(tmp_path, Chore(name="long", how="endless"), Chore(name="bad", how=how))
    assert is_gone(tmp_path, "long")
    assert not list(tmp_path.glob("*.txt"))


DRIVER = """
import sys
from pathlib import Path
from rich.console import Console
from tests.trainer.bench.targeted.test_jobs import Chore
from trainer.bench.targeted.jobs import do_all
chores = [Chore(name="first"), *(Chore(name=name, how="endless") for name in ("one", "two"))]
do_all(chores, Path(sys.argv[1]), say=Console())
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_no_worker_outlives_a_driver_that_is_ended_and_what_was_done_stays(
    tmp_path: Path, number: signal.Signals
) -> None:
    command = [sys.executable, "-c", DRIVER, str(tmp_path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as driver:
        assert driver.stdout is not None
        waited_for = {"1/3 first ends\n", "one begins\n", "two begins\n"}
        while waited_for:
            waited_for.remove(line) if (line := driver.stdout.readline()) in waited_for else None
        driver.send_signal(number)
        driver.communicate()
    assert driver.returncode == -number
    assert is_gone(tmp_path, "one")
    assert is_gone(tmp_path, "two")
    said = done(tmp_path, Chore(name="first"), Chore(name="one"))
    assert said == ["one begins", "1/1 one ends"]
