"""How a command ends, whatever it was that ended it."""

import os
import signal
import subprocess
import sys
import time

import pytest
import typer

from trainer.commands.say import end, ending_in_one_line
from trainer.engine import EngineError

# A thread of a pool is waited for when the interpreter ends.
HANG = """
import sys, time, typer
from concurrent.futures import ThreadPoolExecutor
from trainer.commands import say
say.GRACE_S = 1.0
try:
    with say.ending_in_one_line("stopped"):
        pool = ThreadPoolExecutor(1)
        waiting = pool.submit(time.sleep, 600)
        print("waits", flush=True)
        try:
            waiting.result()
        finally:
            WHERE
except typer.Exit as ended:
    sys.exit(ended.exit_code)
"""


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ValueError("a.toml: no key\nof that name"), 2),
        (EngineError("http://a: nobody answers"), 1),
        (OSError(28, "No space left on device"), 1),
    ],
)
def test_what_ends_it_is_one_line_and_a_code(
    error: Exception, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as ended, ending_in_one_line("stopped"):
        raise error
    assert ended.value.exit_code == code
    said = capsys.readouterr().err
    assert said == f"error: {' '.join(str(error).split())}\n"


def test_what_has_ended_it_already_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended, ending_in_one_line("stopped"):
        end("something does not hold", code=2)
    assert ended.value.exit_code == 2
    assert capsys.readouterr().err == "error: something does not hold\n"


@pytest.mark.parametrize("where", ["pool.shutdown()", "pass"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_thread_that_hangs_is_not_waited_for_long(number: signal.Signals, where: str) -> None:
    command = [sys.executable, "-c", HANG.replace("WHERE", where)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as hanging:
        assert hanging.stdout is not None
        assert hanging.stdout.readline() == "waits\n"
        time.sleep(0.1)
        os.kill(hanging.pid, number)
        _, said = hanging.communicate(timeout=60)
    assert hanging.returncode == 130
    assert said == "error: stopped\n"
