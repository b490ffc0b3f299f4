"""Whose container it is, and whether anybody still needs it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from pipeline.sandbox.docker.owner import Owner, is_abandoned

ROOT = Path(__file__).parents[4]
LATER = time.time() + 3600
EARLIER = time.time() - 3600
TELL = """
import json, sys
from pipeline.sandbox.docker.owner import Owner
print(json.dumps(Owner.this().labels(deadline=float(sys.argv[1]))), flush=True)
sys.stdin.read()
"""


def labels_of_another(deadline: float) -> tuple["subprocess.Popen[str]", dict[str, str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", TELL, str(deadline)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    return process, json.loads(process.stdout.readline())


def test_a_container_of_a_living_process_is_needed_whatever_its_deadline():
    assert not is_abandoned(Owner.this().labels(deadline=EARLIER), now=time.time())


def test_a_container_of_a_killed_process_is_abandoned_at_once():
    process, labels = labels_of_another(LATER)
    with process:
        assert not is_abandoned(labels, now=time.time())
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert is_abandoned(labels, now=time.time())


def test_a_process_that_has_the_number_of_another_is_not_taken_for_it():
    labels = Owner.this().labels(deadline=LATER)
    assert is_abandoned(labels | {"regrow.started": "1"}, now=time.time())


def test_a_container_from_another_machine_is_needed_until_its_deadline():
    labels = Owner.this().labels(deadline=LATER) | {"regrow.host": "elsewhere", "regrow.pid": "1"}
    assert not is_abandoned(labels, now=time.time())
    assert is_abandoned(labels, now=LATER + 1)


def test_a_container_without_an_owner_or_deadline_is_abandoned():
    assert is_abandoned({"regrow": "1"}, now=time.time())
