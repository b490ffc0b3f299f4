import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trainer.checkpoint import CheckpointConfig, CheckpointError, check, latest, publish

KEEP_TWO = CheckpointConfig(keep=2)


def fill(place: Path) -> None:
    (place / "model").mkdir()
    (place / "model" / "weights").write_bytes(place.name.encode() * 100)
    (place / "state").write_text("numbers")


def test_the_latest_checkpoint_is_the_one_that_was_published_last(tmp_path: Path) -> None:
    assert latest(tmp_path) is None
    for step in (1, 2, 3):
        assert publish(tmp_path, step, fill, config=KEEP_TWO) == latest(tmp_path)
    assert sorted(it.name for it in tmp_path.iterdir()) == ["latest", "step-000002", "step-000003"]


def test_a_save_that_fails_leaves_the_checkpoint_before(tmp_path: Path) -> None:
    before = publish(tmp_path, 1, fill, config=KEEP_TWO)

    def break_down(place: Path) -> None:
        fill(place)
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space"):
        publish(tmp_path, 2, break_down, config=KEEP_TWO)
    assert latest(tmp_path) == before
    after = publish(tmp_path, 2, fill, config=KEEP_TWO)
    assert latest(tmp_path) == after
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("name", ["model/weights", "state", "manifest.json"])
@pytest.mark.parametrize("fault", ["cut", "changed", "gone"])
def test_a_file_that_is_not_as_it_was_written_is_named(
    tmp_path: Path, name: str, fault: str
) -> None:
    place = publish(tmp_path, 1, fill, config=KEEP_TWO)
    path = place / name
    data = path.read_bytes()
    if fault == "gone":
        path.unlink()
    else:
        path.write_bytes(data[:-9] if fault == "cut" else data.replace(b"s", b"z"))
    with pytest.raises(CheckpointError, match=re.escape(f"{path}: ")) as caught:
        latest(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_run_that_was_set_back_has_no_checkpoint_of_its_old_future(tmp_path: Path) -> None:
    config = CheckpointConfig(keep=5)
    for step in (1, 2, 3, 4):
        publish(tmp_path, step, fill, config=config)
    (tmp_path / "latest").write_text("step-000001\n")
    publish(tmp_path, 2, fill, config=config)
    assert sorted(it.name for it in tmp_path.glob("step-*")) == ["step-000001", "step-000002"]


SAVER = """
import sys
from pathlib import Path
from trainer.checkpoint import CheckpointConfig, publish

def write(place):
    for number in range(30):
        (place / f"part-{number}").write_bytes(bytes([step % 256]) * 20_000)

step = int(sys.argv[2])
while True:
    step += 1
    publish(Path(sys.argv[1]), step, write, config=CheckpointConfig(keep=2))
    print(step, flush=True)
"""


def test_a_save_that_is_killed_anywhere_leaves_a_whole_checkpoint(tmp_path: Path) -> None:
    done = 0
    for number in range(12):
        command = [sys.executable, "-c", SAVER, str(tmp_path), str(done)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as saver:
            assert saver.stdout is not None
            said = int(saver.stdout.readline())
            time.sleep(0.002 * number)
            saver.send_signal(signal.SIGKILL)
            rest = saver.stdout.read().split()
        said = int(rest[-1]) if rest else said
        place = latest(tmp_path)
        assert place is not None
        check(place)
        # What it said is there; the next one may be, too.
        done = int(place.name.removeprefix("step-"))
        assert said <= done <= said + 1
    publish(tmp_path, done + 1, lambda _: None, config=CheckpointConfig(keep=1))
    assert list(tmp_path.glob(".*")) == []
