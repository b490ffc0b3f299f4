"""Finding a sandbox."""

import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.sandbox import seccomp
from pipeline.sandbox.bubblewrap import Bubblewrap
from pipeline.sandbox.choose import open_sandbox, probe
from pipeline.sandbox.protocol import Job, SandboxBrokenError, SandboxUnavailableError

ROOT = Path(__file__).parents[3]


def test_the_probe_agrees_with_opening():
    (found,) = probe()
    assert found.name == "bubblewrap"
    try:
        assert open_sandbox("auto").name == "bubblewrap"
    except SandboxUnavailableError as error:
        assert (found.works, found.detail) == (False, str(error))
    else:
        assert found.works
        assert 0 < found.start_s < 5


def test_a_missing_binary_is_said_in_one_line():
    code = "from pipeline.sandbox.choose import probe; print(*probe())"
    # Without site-packages there is no binary either.
    answer = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "works=False" in answer.stdout
    assert "pip install" in answer.stdout


def test_a_binary_that_fails_is_the_machines_fault():
    with pytest.raises(SandboxBrokenError, match="did not start"):
        Bubblewrap(Path("/bin/false")).run(Job(command=("/bin/true",)))
    with pytest.raises(SandboxBrokenError, match="No such file"):
        Bubblewrap(Path("/nonexistent")).run(Job(command=("/bin/true",)))


def test_a_machine_without_a_filter_is_refused():
    with pytest.raises(ValueError, match="riscv64"):
        seccomp.program("riscv64")


@pytest.mark.parametrize("machine", seccomp.MACHINES)
def test_a_filter_is_whole_steps(machine: str):
    assert len(seccomp.program(machine)) % 8 == 0
