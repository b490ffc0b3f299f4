"""Finding a sandbox."""

import contextlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.sandbox import seccomp
from pipeline.sandbox.bubblewrap import Bubblewrap
from pipeline.sandbox.choose import open_sandbox, probe
from pipeline.sandbox.protocol import Job, SandboxBrokenError, SandboxUnavailableError
from pipeline.sandbox.warm import Warm

ROOT = Path(__file__).parents[3]


def test_the_probe_agrees_with_opening():
    found = {it.name: it for it in probe()}
    assert list(found) == ["bubblewrap", "docker"]
    for name, it in found.items():
        if it.works:
            assert open_sandbox(name).name == name
            assert it.start_s > 0
        else:
            with pytest.raises(SandboxUnavailableError, match=re.escape(it.detail)):
                open_sandbox(name)


def test_auto_is_bubblewrap_where_that_works_and_else_docker():
    works = [it.name for it in probe() if it.works]
    if works:
        assert open_sandbox("auto").name == works[0]
    else:
        with pytest.raises(SandboxUnavailableError):
            open_sandbox("auto")


def test_a_warm_sandbox_has_the_name_of_what_it_warms():
    with contextlib.closing(open_sandbox("auto", warm=True)) as warm:
        assert isinstance(warm, Warm)
        assert warm.name == open_sandbox("auto").name


def test_a_missing_binary_is_said_in_one_line():
    code = "from pipeline.sandbox.choose import probe; print(*probe())"
    # Without site-packages there is no binary either.
    answer = subprocess.run(
        [sys.executable, "-S", "-c", code],
        cwd=ROOT,
        env={},
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout.count("works=False") == 2
    assert "bubblewrap is missing: pip install" in answer.stdout
    assert "Docker SDK for Python is missing: pip install" in answer.stdout


def test_a_binary_that_fails_is_the_machines_fault():
    with pytest.raises(SandboxBrokenError, match="did not start"):
        Bubblewrap(Path("/bin/false")).run(Job(command=("/bin/true",)))
    with pytest.raises(SandboxBrokenError, match="No such file"):
        Bubblewrap(Path("/nonexistent")).run(Job(command=("/bin/true",)))


def test_a_machine_without_a_filter_is_refused():
    with pytest.raises(SandboxUnavailableError, match="riscv64"):
        seccomp.program("riscv64")


def test_a_machine_without_a_filter_is_said_in_one_line():
    # In this personality Linux gives the machine the name of its 32-bit sibling.
    code = (
        "import ctypes; ctypes.CDLL(None).personality(8);"
        "from pipeline.sandbox.choose import probe; print(*probe())"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "works=False" in answer.stdout
    assert "no system call filter for" in answer.stdout
