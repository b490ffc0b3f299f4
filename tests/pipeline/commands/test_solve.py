"""`regrow solve`: agents try tasks; what they did is graded, watched and kept."""

import fcntl
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.agent.scripts import calls_for
from pipeline.snapshot import SUFFIX, snapshot_tree
from pipeline.task.attempt_shards import read_attempts
from pipeline.task.manifest import check_files
from pipeline.task.patch import apply_patch
from pipeline.task.record import Task
from pipeline.task.shards import read_tasks
from pipeline.task.solve_tree import solve_tree
from pipeline.task.tree import read_tree
from tests.pipeline.commands.conftest import Regrow, kill_at
from tests.pipeline.model_server import Played, calls, model_server, refuses, says

Run = Callable[[], Path]


@pytest.fixture
def run(tiny_run: Path, tmp_path: Path) -> Path:
    """A run of its own, to which attempts are added."""
    copy = tmp_path / "run"
    subprocess.run(["cp", "-r", str(tiny_run), str(copy)], check=True)
    return copy


@pytest.fixture
def played() -> Iterator[Played]:
    with model_server() as found:
        yield found


def solved(regrow: Regrow, run: Path, *arguments: object) -> Any:
    done = regrow("solve", run, *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def chat(played: Played, *more: object) -> tuple[object, ...]:
    return ("--agent", "chat", "--endpoint", played.url, "--model", "coder-1", *more)


def answers(run: Path, scratch: Path) -> dict[str, tuple[Task, list[tuple[str, Any]]]]:
    """Return for each task the calls that solve it, by its title."""
    found = {}
    for task in read_tasks(run):
        archive = run / "snapshots" / f"{task.snapshot.digest}{SUFFIX}"
        files = read_tree(snapshot_tree(archive, cache=scratch))
        before = solve_tree(task, files)
        wanted = calls_for(apply_patch(before, task.deletion.gold_patch), before=before)
        found[task.feature.title] = (task, [(it.tool, it.arguments) for it in wanted])
    return found


def test_the_gold_patch_solves_and_nothing_does_not(run: Path, regrow: Regrow) -> None:
    num_tasks = len(list(read_tasks(run)))
    gold = solved(regrow, run, "--agent", "gold", "--attempts", 2)
    assert gold["verdicts"] == {"solved": 2 * num_tasks}
    assert {it["rate"] for it in gold["tasks"]} == {1.0}
    empty = solved(regrow, run, "--agent", "empty", "--attempts", 1)
    assert empty["verdicts"] == {"unsolved": num_tasks}
    # Those of both are there, seen by the monitor, in a run that is whole.
    check_files(run)
    kept = list(read_attempts(run))
    assert len(kept) == 3 * num_tasks
    assert {it.agent for it in kept} == {"gold", "empty"}
    assert all(it.monitored is not None for it in kept)


def test_a_script_of_some_skill_solves_some_and_the_same_each_time(
    run: Path, regrow: Regrow
) -> None:
    arguments = ("--agent", "scripted", "--skill", 0.5, "--attempts", 4)
    found = solved(regrow, run, *arguments)
    assert 0 < found["verdicts"]["solved"] < found["num_attempts"]
    assert set(found["verdicts"]) == {"solved", "unsolved"}
    shutil.rmtree(run / "solving")
    assert solved(regrow, run, *arguments) == found
    # Other settings are other attempts, in place of these.
    better = solved(regrow, run, *arguments[:-4], "--skill", 1.0, "--attempts", 4)
    assert better["verdicts"] == {"solved": found["num_attempts"]}


def test_a_model_solves_tasks_over_http_whatever_else_it_writes(
    run: Path, regrow: Regrow, played: Played, tmp_path: Path
) -> None:
    known = answers(run, tmp_path / "trees")

    def act(body: dict[str, Any]) -> Any:
        system, request, *rest = body["messages"]
        assert "You work alone" in system["content"]
        titles = [it for it in known if it.rpartition(".")[2] in request["content"]]
        wanted = known[max(titles, key=len)][1]
        match sum(it["role"] == "assistant" for it in rest):
            case 0:
                return calls(("read_file", '{"path": "ti'), ("make_coffee", {}))
            case 1:
                assert "cannot be read" in rest[1]["content"]
                assert "there is no tool 'make_coffee'" in rest[2]["content"]
                return calls(*wanted, text="I write it.")
            case _:
                return says("It is written.")

    played.act = act
    found = solved(regrow, run, *chat(played, "--attempts", 1))
    assert found["verdicts"] == {"solved": len(known)}
    assert found["model"] == "coder-1"
    assert found["num_tokens"] == found["spent"]["num_tokens"] == 3 * 120 * len(known)
    attempt = next(it for it in read_attempts(run) if it.agent == "chat")
    assert [it.tool for it in attempt.turns][:2] == ["unreadable_call", "make_coffee"]
    # What is done is not asked for again.
    played.act = None
    played.asked.clear()
    again = solved(regrow, run, *chat(played, "--attempts", 1))
    assert again["verdicts"] == found["verdicts"]
    assert played.asked == []


def test_a_model_that_is_no_use_solves_nothing_and_breaks_nothing(
    run: Path, regrow: Regrow, played: Played
) -> None:
    played.act = lambda _: says("As a language model I cannot do that.")
    found = solved(regrow, run, *chat(played, "--attempts", 1))
    assert found["verdicts"] == {"unsolved": len(list(read_tasks(run)))}


def test_a_server_that_fails_is_no_verdict_and_the_same_command_goes_on(
    run: Path, regrow: Regrow, played: Played
) -> None:
    played.script = [says("No."), refuses(401, "bad key")]
    arguments = ("solve", run, *chat(played, "--attempts", 1, "--jobs", 1))
    done = regrow(*arguments)
    assert done.returncode == 1
    assert "status 401: bad key; expected its key in the environment variable" in done.stderr
    assert "REGROW_KEY" in done.stderr
    assert [it.verdict for it in read_attempts(run)] == ["unsolved"]
    played.script, played.act = [], lambda _: says("No.")
    assert regrow(*arguments).returncode == 0
    assert len(list(read_attempts(run))) == len(list(read_tasks(run)))


def test_what_is_allowed_is_not_overspent(run: Path, regrow: Regrow, played: Played) -> None:
    played.act = lambda _: says("No.")
    done = regrow(
        "solve", run, *chat(played, "--max-tokens", 3000, "--max-new-tokens", 100, "--jobs", 1)
    )
    assert done.returncode == 1
    assert "allow more, and the same command goes on" in done.stderr
    assert 0 < 120 * len(played.asked) <= 3000
    assert len(list(read_attempts(run))) == len(played.asked)


def test_killed_it_goes_on_where_it_was(
    run: Path, regrow: Regrow, environ: dict[str, str], tmp_path: Path
) -> None:
    arguments = ("solve", str(run), "--agent", "gold", "--attempts", "2")
    # `kill_at` looks at the done-records of `regrow generate`; these are elsewhere.
    (tmp_path / "watched").mkdir()
    (run / "solving").mkdir()
    (tmp_path / "watched" / "done").symlink_to(run / "solving")
    kill_at(2, arguments, tmp_path / "watched", environ)
    kept = {it.name: it.stat().st_mtime_ns for it in (run / "solving").glob("[!.]*")}
    assert kept
    done = regrow(*arguments)
    assert done.returncode == 0, done.stderr
    now = {it.name: it.stat().st_mtime_ns for it in (run / "solving").glob("[!.]*")}
    assert kept.items() <= now.items()
    assert len(list(read_attempts(run))) == 2 * len(list(read_tasks(run)))


BAD = {
    ("--agent", "chat"): "--agent chat needs --endpoint URL and --model NAME",
    ("--agent", "chat", "--endpoint", "nowhere", "--model", "m"): "--endpoint: 'nowhere' is no URL",
    ("--agent", "gold", "--model", "m"): "--endpoint and --model belong to --agent chat",
    ("--agent", "gold", "--style", "rhyme"): "--style 'rhyme': tiny-",
    ("--agent", "chat", "--endpoint", "http://h/v1", "--model", "m", "--max-usd", "0"): (
        "--max-usd 0: expected more than 0"
    ),
    ("--agent", "chat", "--endpoint", "http://h/v1", "--model", "m", "--max-usd", "1"): (
        "--max-usd without --usd-in or --usd-out"
    ),
}


@pytest.mark.parametrize(("arguments", "said"), BAD.items(), ids=str)
def test_bad_input_is_one_line(
    tiny_run: Path, regrow: Regrow, arguments: tuple[str, ...], said: str
) -> None:
    done = regrow("solve", tiny_run, *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {said}")
    assert done.stderr.count("\n") == 1


def test_a_folder_that_is_no_run_is_one_line(regrow: Regrow, tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        done = regrow("solve", folder, "--agent", "gold")
        assert done.returncode == 2
        assert done.stderr.startswith(f"error: {folder}")
        assert done.stderr.count("\n") == 1


def test_a_run_that_another_command_writes_is_left_alone(run: Path, regrow: Regrow) -> None:
    with (run / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = regrow("solve", run, "--agent", "gold")
    assert done.returncode == 2
    assert done.stderr == f"error: {run}: another `regrow` command is at work here\n"
