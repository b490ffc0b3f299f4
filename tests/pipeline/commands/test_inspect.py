import dataclasses
import json
from pathlib import Path

from pipeline.task.manifest import write_manifest
from pipeline.task.record import Task
from pipeline.task.reject import RejectRow
from pipeline.task.shards import read_tasks, write_shards
from tests.pipeline.commands.conftest import Regrow


def test_the_funnel_counts_everything_that_went_in(tiny_run: Path, regrow: Regrow):
    done = regrow("inspect", tiny_run, "--json")
    answer = json.loads(done.stdout)
    rows = {row["stage"]: row for row in answer["funnel"]}
    assert (rows["fetch"]["num_in"], rows["trace"]["num_out"]) == (1, 1)
    assert rows["finalise"]["num_out"] == answer["num_tasks"] == len(answer["tasks"])
    for row in answer["funnel"]:
        assert row["num_in"] - row["num_out"] == sum(row["reasons"].values())


def test_a_task_is_shown_from_request_to_evidence(tiny_run: Path, regrow: Regrow):
    task = next(it for it in read_tasks(tiny_run) if it.feature.title == "tiny.words.shout")
    said = regrow("inspect", tiny_run, "--task", task.id[:9]).stdout
    for part in (
        task.id,
        "instruction: specification",
        "instruction: bug_report",
        "-    loud = text.upper()",
        "tests/test_words.py::test_shout_louder[2]",
        "NameError: name 'shout' is not defined",
    ):
        assert part in said


def _odd(task: Task, text: str) -> Task:
    """Return a task whose repository writes a text wherever it can."""
    target = dataclasses.replace(task.evidence.fail_to_pass[0], id=text, symptom=text)
    return dataclasses.replace(
        task,
        feature=dataclasses.replace(task.feature, title=text),
        deletion=dataclasses.replace(task.deletion, patch=f"+{text}\n", seams=(text,)),
        evidence=dataclasses.replace(task.evidence, fail_to_pass=(target,)),
        instructions=(dataclasses.replace(task.instructions[0], style=text, text=text),),
    )


def test_what_a_repository_says_is_shown_and_never_obeyed(
    tiny_run: Path, regrow: Regrow, tmp_path: Path
):
    task = _odd(next(read_tasks(tiny_run)), "test_a[red][/tmp]::x::\x1b[2J\x07")
    said = task.feature.title
    reject = RejectRow(
        schema_version=1, repo=said, subject=said, stage="trace", reason="empty", detail=said
    )
    shards = [
        *write_shards(tmp_path, "tasks", [task]),
        *write_shards(tmp_path, "rejects", [reject]),
    ]
    write_manifest(tmp_path, shards, config={})
    for options, num_shown in (((), 1), (("--rejects",), 3), (("--task", task.id), 7)):
        done = regrow("inspect", tmp_path, *options)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("test_a[red][/tmp]::x::[2J") == num_shown, done.stdout
        assert not {"\x1b", "\x07"} & set(done.stdout)


def test_a_transcript_is_shown_turn_by_turn(tiny_run: Path, regrow: Regrow):
    task = next(it for it in read_tasks(tiny_run) if it.feature.title == "tiny.words.shout")
    done = regrow("inspect", tiny_run, "--task", task.id, "--transcript")
    assert done.returncode == 0, done.stderr
    assert "1. edit_files" in done.stdout
    assert "Does everything still import?" in done.stdout
    turns = json.loads(
        regrow("inspect", tiny_run, "--task", task.id, "--transcript", "--json").stdout
    )
    assert turns[-1]["tool"] == "run_tests"


def test_the_certificates_of_a_run_are_shown(tiny_run: Path, regrow: Regrow):
    done = regrow("inspect", tiny_run, "--leaks")
    assert done.returncode == 0, done.stderr
    tasks = list(read_tasks(tiny_run))
    assert done.stdout.count("clean") == len(tasks)
    found = json.loads(regrow("inspect", tiny_run, "--leaks", "--json").stdout)
    assert {it["verdict"] for it in found.values()} == {"clean"}
    assert found.keys() == {task.id for task in tasks}


def test_what_was_found_and_why_it_may_stay_is_shown(tiny_run: Path, regrow: Regrow):
    task = next(it for it in read_tasks(tiny_run) if it.leaks.findings)
    done = regrow("inspect", tiny_run, "--leaks", "--task", task.id)
    assert done.returncode == 0, done.stderr
    assert "verdict: clean; scanned besides the system: " in done.stdout
    assert done.stdout.count("recorded") == len(task.leaks.findings)
    one = json.loads(regrow("inspect", tiny_run, "--leaks", "--task", task.id, "--json").stdout)
    assert len(one["findings"]) == len(task.leaks.findings)


def test_rejects_are_listed_with_their_reasons(tiny_run: Path, regrow: Regrow):
    rows = json.loads(regrow("inspect", tiny_run, "--rejects", "--json").stdout)
    assert all(row["stage"] and row["reason"] and row["detail"] for row in rows)


def test_what_is_not_there_is_one_line(tiny_run: Path, regrow: Regrow, tmp_path: Path):
    for arguments, said in (
        ((tmp_path / "none",), "no such folder"),
        ((tmp_path,), "no such file, expected the manifest of a finished run"),
        ((tiny_run, "--task", "nothing"), "0 tasks start with 'nothing', expected one"),
    ):
        done = regrow("inspect", *arguments)
        assert done.returncode == 2
        assert said in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
