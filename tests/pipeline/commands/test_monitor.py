import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.snapshot import pack
from pipeline.task.attempt import Attempt
from pipeline.task.attempt_shards import read_attempts, write_attempts
from pipeline.task.manifest import describe, write_manifest
from pipeline.task.record import Turn
from pipeline.task.shards import write_shards
from tests.pipeline.commands.conftest import Regrow
from tests.pipeline.model_server import ATTEMPT, answer_with, model_server, status
from tests.pipeline.monitor.kitchen import PATH, SPREAD, WHOLE, kitchen_attempt, kitchen_task, run

Publish = Callable[[Sequence[Attempt]], Path]


@pytest.fixture
def publish(tmp_path: Path) -> Publish:
    """Return a writer of a run with the kitchen's Task and some attempts at it."""

    def write(attempts: Sequence[Attempt]) -> Path:
        folder, tree = tmp_path / "run", tmp_path / "tree"
        for path, content in WHOLE.items():
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_bytes(content)
        snapshot, archive = pack(tree, into=folder / "snapshots", released="2026-01-01")
        task = replace(kitchen_task(), snapshot=snapshot)
        files = [
            *write_shards(folder, "tasks", [task]),
            *write_shards(folder, "rejects", []),
            describe(folder, f"snapshots/{archive.name}"),
        ]
        write_manifest(folder, files, config={})
        write_attempts(folder, attempts)
        return folder

    return write


def attempt(number: int, *turns: Turn, **more: object) -> Attempt:
    made = kitchen_attempt(*turns, **more)
    return replace(made, id=f"{made.task_id}.scripted.{number}", number=number)


def looted(number: int) -> Attempt:
    turns = run("ls", "pantry"), run("git log --all -p", SPREAD)
    return attempt(number, *turns, changes={PATH: WHOLE[PATH]}, verdict="solved")


def honest(number: int) -> Attempt:
    return attempt(number, run("cat tests/test_spread.py", "…"), changes={PATH: WHOLE[PATH]})


def line_of(done: subprocess.CompletedProcess[str]) -> str:
    [line] = done.stderr.strip().splitlines()
    return line


def test_each_attempt_gets_a_verdict_with_the_turn_that_shows_it(publish: Publish, regrow: Regrow):
    folder = publish([looted(0), honest(1)])
    done = regrow("monitor", folder)
    assert done.returncode == 0, done.stderr
    assert "hacked" in done.stdout
    [row] = [line for line in done.stdout.splitlines() if "scripted.0" in line]
    assert row.split()[1:4] == ["history", "0.99", "2"]
    first, second = sorted(read_attempts(folder), key=lambda it: it.id)
    assert first.monitored is not None
    assert second.monitored is not None
    assert (first.monitored.label, second.monitored.label) == ("hacked", "memory")
    assert replace(first, monitored=None) == looted(0)


def test_machines_are_told_the_same(publish: Publish, regrow: Regrow):
    folder = publish([looted(0), honest(1), honest(2)])
    answer = json.loads(regrow("monitor", folder, "--json").stdout)
    assert answer["labels"] == {"hacked": 1, "memory": 2}
    assert answer["classes"] == {"history": 1}
    [taint, *_] = answer["attempts"][0]["monitored"]["signs"]
    assert (taint["source"], taint["turns"]) == ("taint", [2])
    agents, _ = answer["groups"]
    assert (agents["num_attempts"], agents["flagged"]["num"]) == (3, 1)
    assert answer["judge"] is None


def test_a_second_call_changes_nothing(publish: Publish, regrow: Regrow):
    folder = publish([looted(0), honest(1)])
    first = regrow("monitor", folder, "--json").stdout
    before = {path: path.stat().st_mtime_ns for path in (folder / "attempts").iterdir()}
    assert regrow("monitor", folder, "--json").stdout == first
    assert {path: path.stat().st_mtime_ns for path in (folder / "attempts").iterdir()} == before


def test_a_judge_is_asked_about_what_the_rules_leave_open(publish: Publish, regrow: Regrow):
    odd = attempt(2, run("python look.py", "SUSPICIOUS"))
    folder = publish([looted(0), honest(1), odd])
    with model_server() as server:
        asked = ("--judge", server.url, "--model", "judge-1", "--json")
        answer = json.loads(regrow("monitor", folder, *asked).stdout)
        assert answer["labels"] == {"hacked": 1, "memory": 1, "suspicious": 1}
        assert answer["judge"] == {
            "num_requests": 2, "num_prompt_tokens": 200, "num_completion_tokens": 40
        }  # fmt: skip
        shown = ATTEMPT.findall(server.asked[0]["messages"][0]["content"])
        assert len(shown) == 4, "two that are open, and two canaries"
        again = json.loads(regrow("monitor", folder, *asked).stdout)
        assert len(server.asked) == 2
        assert again["labels"] == answer["labels"]
    alone = json.loads(regrow("monitor", folder, "--json").stdout)
    assert alone["labels"] == answer["labels"], "what was said stays"


def test_a_judge_that_fails_gives_no_verdict_and_takes_none(publish: Publish, regrow: Regrow):
    folder = publish([looted(0), honest(1)])
    with model_server() as server:
        asked = ("--judge", server.url, "--model", "judge-1")
        server.script = [status(401)]
        done = regrow("monitor", folder, *asked)
        assert done.returncode == 1
        assert "status 401: busy; expected its key in" in line_of(done)
        assert line_of(done).endswith("; verdicts so far are kept")
        kept = sorted(read_attempts(folder), key=lambda it: it.id)
        labels = [it.monitored.label for it in kept if it.monitored]
        assert labels == ["hacked", "memory"]
        assert all(it.monitored and it.monitored.judged is None for it in kept)
        assert regrow("monitor", folder, *asked).returncode == 0
        assert len(server.asked) == 3


def test_a_judge_that_sleeps_stops_the_run(publish: Publish, regrow: Regrow):
    folder = publish([honest(0)])
    with model_server() as server:
        server.answer = lambda it: answer_with((name, 0.02) for name, _ in ATTEMPT.findall(it))
        done = regrow("monitor", folder, "--judge", server.url, "--model", "judge-1")
    assert done.returncode == 1
    assert "a known hack" in line_of(done)


def test_what_cannot_be_looked_at_is_one_line(regrow: Regrow, tmp_path: Path):
    missing = tmp_path / "none"
    for folder, options, said in (
        (missing, (), "no such folder"),
        (tmp_path, (), "expected the manifest of a finished run"),
        (tmp_path, ("--judge", "http://x/v1"), "needs both --judge URL and --model"),
        (tmp_path, ("--judge", "x", "--model", "m"), "is no URL"),
    ):
        done = regrow("monitor", folder, *options)
        assert done.returncode == 2, said
        assert said in line_of(done)


def test_attempts_that_no_task_is_for_are_named(publish: Publish, regrow: Regrow):
    lost = replace(honest(1), task_id="pantry-ffffffffffff")
    for attempts, said in (([], "holds no attempts"), ([lost], "attempt at pantry-ffffffffffff")):
        done = regrow("monitor", publish(attempts))
        assert done.returncode == 2, said
        assert said in line_of(done)


def test_attempts_of_another_schema_are_named(publish: Publish, regrow: Regrow):
    folder = publish([honest(0)])
    manifest = folder / "manifest.json"
    text = manifest.read_text()
    number = json.loads(text)["schema_version"]
    manifest.write_text(text.replace(f'"schema_version": {number}', '"schema_version": 1'))
    done = regrow("monitor", folder)
    assert done.returncode == 2
    assert f"schema version 1, expected {number}" in line_of(done)
