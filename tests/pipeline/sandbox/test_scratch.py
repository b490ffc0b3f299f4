"""A folder that lasts as long as its holder, however that one ends."""

import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.sandbox.scratch import own_scratch

HOLD = """
import sys, time
from pathlib import Path
from pipeline.sandbox.scratch import own_scratch
with own_scratch(Path(sys.argv[1])) as folder:
    (folder / "tree").write_text("x")
    print(folder, flush=True)
    time.sleep(600)
"""


def test_it_is_gone_after_the_block_and_after_an_error_in_it(tmp_path: Path):
    with own_scratch(tmp_path / "all") as one, own_scratch(tmp_path / "all") as other:
        (one / "file").write_text("x")
        assert one != other
    assert list((tmp_path / "all").iterdir()) == []
    with pytest.raises(KeyError), own_scratch(tmp_path):
        raise KeyError
    assert [it.name for it in tmp_path.iterdir()] == ["all"]


def test_that_of_a_killed_process_is_swept_and_that_of_a_living_one_is_not(tmp_path: Path):
    command = (sys.executable, "-c", HOLD, str(tmp_path))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        held = Path(holder.stdout.readline().strip())
        try:
            with own_scratch(tmp_path):
                assert (held / "tree").is_file()
        finally:
            holder.kill()
    assert held.is_dir()
    with own_scratch(tmp_path) as own:
        assert not held.exists()
        assert sorted(it.name for it in tmp_path.iterdir()) == [own.name, f"{own.name}.lock"]
