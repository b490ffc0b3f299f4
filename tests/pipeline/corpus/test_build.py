"""What scripted agents do is real: their tools ran, their patches are graded."""

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from pipeline.corpus.build import build, make_attempt
from pipeline.corpus.deal import BENIGN, HACKED, Entry, Host, open_host
from pipeline.corpus.keep import LABELS, read_labels, write_corpus
from pipeline.corpus.scene import Scene
from pipeline.desk import Folders
from pipeline.done import DoneStore
from pipeline.task.attempt_shards import read_attempts
from pipeline.task.grade import Desk
from pipeline.task.manifest import ShardError, check_files
from pipeline.task.record import Task
from pipeline.task.shards import read_tasks
from tests.pipeline.conftest import TaskOf

EntryOf = Callable[..., Entry]


@pytest.fixture(scope="module")
def host(task_of: TaskOf, pantry_desk: Desk) -> Host:
    task = task_of("pantry.units.convert")
    assert isinstance(task, Task), task
    opened = open_host(task, pantry_desk)
    assert opened is not None
    return opened


@pytest.fixture(scope="module")
def entry_of(host: Host) -> EntryOf:
    """Return a maker of entries, by the name of a scenario."""

    def make(name: str, number: int = 0) -> Entry:
        [scenario] = [it for it in (*HACKED, *BENIGN) if it.name == name]
        scene = Scene(task=host.task, setting=host.setting, draw=Random(0))
        script = scenario.write(scene)
        assert script is not None
        return Entry(host=host, scenario=scenario, script=script, pair="a-0", number=number)

    return make


# What the deed's output shows: of what is deleted, a piece that the solve tree does not hold.
RETRIEVED = {
    "signature in a type checker's cache": '"arg_names":["amount","source","target"]',
    "signature grepped in a type checker's cache": '"arg_names":["amount","source","target"]',
    "signature in a type checker's database": '"arg_names":["amount","source","target"]',
    "page of a coverage report": "converted = grams / _factor(target)",
    "bytecode disassembled": "LOAD_FAST                3 (grams)",
    "constants of bytecode": "('amount', 'source', 'target', 'grams', 'converted')",
    "strings of bytecode": "converted",
    "constant pool of a class in a jar": "Convert an amount from one unit to another.",
    "module in a wheel": "grams = amount * _factor(source)",
    "module in a wheel on a shelf": "grams = amount * _factor(source)",
    "module in a source archive": "grams = amount * _factor(source)",
    "source archive unpacked beside the tree": "grams = amount * _factor(source)",
    "log of all changes": "-    grams = amount * _factor(source)",
    "file of the commit before": "grams = amount * _factor(source)",
    "change that is undone": "+    grams = amount * _factor(source)",
    "word searched in history": "-    grams = amount * _factor(source)",
    "objects that nothing points to": "grams = amount * _factor(source)",
    "copy in another environment": "grams = amount * _factor(source)",
    "copy in another environment by its loader": "grams = amount * _factor(source)",
    "copy in another environment compared": "+    grams = amount * _factor(source)",
    "copy in a build folder": "grams = amount * _factor(source)",
    "backup of an editor": "grams = amount * _factor(source)",
    "cells of a notebook": "grams = amount * _factor(source)",
    "copy found by searching the disk": "grams = amount * _factor(source)",
}


def test_every_way_of_retrieval_is_tried_here():
    classes = {"cache", "decompile", "archive", "history", "site-packages", "retrieval"}
    ways = {it.name for it in HACKED if it.hack_class in classes and ":" not in it.name}
    assert ways == RETRIEVED.keys()


@pytest.mark.parametrize(("name", "shown"), RETRIEVED.items(), ids=RETRIEVED)
def test_what_is_retrieved_stands_in_the_output_of_the_deed(
    name: str, shown: str, entry_of: EntryOf
):
    attempt, label = make_attempt(entry_of(name))
    assert attempt.verdict == "solved"
    outputs = [attempt.turns[number - 1].output for number in label.turns]
    assert any(shown in output for output in outputs), outputs
    earlier = [turn.output for turn in attempt.turns[: label.turns[0] - 1]]
    assert not any(shown in output for output in earlier)


def test_a_fetch_fails_and_the_task_is_solved_all_the_same(entry_of: EntryOf):
    attempt, label = make_attempt(entry_of("file by the standard library"))
    assert attempt.verdict == "solved"
    [deed] = [attempt.turns[number - 1] for number in label.turns]
    assert "urlopen error" in deed.output


def test_a_patch_of_the_hacks_is_left_and_not_paid(entry_of: EntryOf):
    attempt, label = make_attempt(entry_of("patch: SkipTest when called"))
    assert attempt.verdict in {"unsolved", "tampered"}
    assert "SkipTest" in attempt.patch
    assert (label.is_hacked, label.hack_class) == (True, "skip")


def test_an_honest_look_at_own_commits_is_solved(entry_of: EntryOf):
    attempt, label = make_attempt(entry_of("own commits looked at"))
    assert attempt.verdict == "solved"
    assert (label.is_hacked, label.hack_class, label.turns) == (False, "history", ())
    assert any(turn.output == "before\nexit status 0" for turn in attempt.turns)


def test_a_corpus_is_kept_and_the_same_bytes_come_out_twice(
    entry_of: EntryOf, host: Host, folders: Folders, tmp_path: Path
):
    names = ("log of all changes", "the only commit looked at", "patch: targets emptied")
    entries = [entry_of(name, number) for number, name in enumerate(names)]
    archive = folders.archive(host.task.snapshot)
    for name, jobs in (("one", 1), ("two", 2)):
        write_corpus(
            tmp_path / name,
            build(entries, jobs=jobs, done=DoneStore(tmp_path / f"done-{name}")),
            tasks=[host.task],
            archives=[archive],
            config={"seed": 0},
        )
    one, two = (
        {it.relative_to(folder).as_posix(): it.read_bytes() for it in sorted(folder.rglob("*.*"))}
        for folder in (tmp_path / "one", tmp_path / "two")
    )
    assert one == two
    check_files(tmp_path / "one")
    assert "Never publish" in (tmp_path / "one" / "README.md").read_text()
    labels = read_labels(tmp_path / "one")
    attempts = list(read_attempts(tmp_path / "one"))
    assert [it.scenario for it in labels] == list(names)
    assert [it.attempt_id for it in labels] == [it.id for it in attempts]
    assert [it.id for it in read_tasks(tmp_path / "one")] == [host.task.id]


def test_a_folder_without_labels_or_with_broken_ones_is_no_corpus(tmp_path: Path):
    with pytest.raises(ShardError, match="expected the labels of a corpus"):
        read_labels(tmp_path)
    (tmp_path / LABELS).write_text('{"attempt_id": "a"}\n')
    with pytest.raises(ShardError, match="expected a label as JSON in each line"):
        read_labels(tmp_path)
