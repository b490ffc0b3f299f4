"""An engine that stops while a command works with it."""

import subprocess
import sys
import threading
from pathlib import Path
from typing import IO

from pipeline.task.shards import read_rejects, read_tasks
from tests.pipeline.commands.conftest import Regrow, wait_for_records
from tests.pipeline.engines import SecondEngine


class Lines:
    """What a process says on standard error, as it comes."""

    def __init__(self, stream: IO[str]) -> None:
        self.text = ""
        self._grew = threading.Condition()
        self._thread = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self._thread.start()

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            with self._grew:
                self.text += line
                self._grew.notify_all()

    def wait_for(self, text: str) -> bool:
        """Wait until a text has come; tell whether it did in two minutes."""
        with self._grew:
            return self._grew.wait_for(lambda: text in self.text, 120)


def test_a_run_whose_engine_stops_pauses_and_loses_nothing(
    second_engine: SecondEngine,
    tiny_manifest: Path,
    environ: dict[str, str],
    regrow: Regrow,
    tmp_path: Path,
):
    out = tmp_path / "run"
    command = [sys.executable, "-m", "pipeline", "generate", str(tiny_manifest)]
    command += ["--out", str(out), "--max-tasks", "2", "--sandbox", "docker", "--jobs", "2"]
    with subprocess.Popen(
        command,
        env={**environ, "DOCKER_HOST": second_engine.unix},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        said = Lines(process.stderr)
        try:
            wait_for_records(out / "done", 1, process)
            second_engine.stop()
            assert said.wait_for(f"the Docker engine at {second_engine.unix} is gone"), said.text
            assert process.poll() is None
            second_engine.start()
            assert said.wait_for(f"the Docker engine at {second_engine.unix} is back"), said.text
            assert process.wait(240) == 0, said.text
        finally:
            process.kill()
        summary = process.stdout.read()
    assert "Traceback" not in said.text + summary
    undisturbed = tmp_path / "undisturbed"
    done = regrow("generate", tiny_manifest, "--out", undisturbed, "--max-tasks", 2)
    assert done.returncode == 0, done.stderr
    assert outcome(out) == outcome(undisturbed)


def outcome(run: Path) -> list[tuple[str, str]]:
    """Return the ids of a run's tasks, and the reasons why others were rejected."""
    tasks = [(task.id, "") for task in read_tasks(run)]
    assert len(tasks) == 2
    return sorted(tasks + [(row.subject, row.reason) for row in read_rejects(run)])
