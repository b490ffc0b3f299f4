"""What becomes of a unit of work: done, refused, or to be tried again."""

import dataclasses
import shutil
from pathlib import Path
from typing import get_args

import pytest

from pipeline.config import Settings
from pipeline.factory import Envelope, Factory
from pipeline.manifest import load_manifest
from pipeline.pool import EvidenceMode
from pipeline.prepare import Prepared
from pipeline.sandbox.protocol import Sandbox, SandboxBrokenError, SandboxStoppedError
from pipeline.selection import Choice
from pipeline.task.origin import Install, Repo, Source, TestCommand
from pipeline.task.schema import to_row

UNIT = Envelope(stage="make", repo="tiny", status="ok", key="key", slots=(0, 2), prepared="other")


@pytest.fixture
def factory(sandbox: Sandbox, tmp_path: Path) -> Factory:
    settings = Settings(out=tmp_path / "run", cache=tmp_path / "cache", index="http://127.0.0.1:9")
    return Factory(settings, sandbox=sandbox)


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "a.py").write_text("A = 1\n")
    return Repo(
        name="tiny",
        source=Source(kind="path", location=str(tmp_path / "tree"), pin=""),
        licence="MIT",
        python="3.11",
        install=Install(),
        test=TestCommand(),
    )


def test_an_envelope_survives_a_runner():
    assert Envelope.from_json(UNIT.to_json()) == UNIT


def test_a_machine_that_recovers_costs_nothing_but_time(factory: Factory):
    tries = []

    def work() -> dict[str, object]:
        tries.append(1)
        if len(tries) < 2:
            raise SandboxBrokenError("no memory to fork")
        return {"status": "ok"}

    assert factory._settle(UNIT, work).status == "ok"
    assert factory.done.get("key") == {"status": "ok"}
    assert not factory.failures


def test_a_machine_that_stays_broken_is_no_verdict(factory: Factory):
    def work() -> dict[str, object]:
        raise OSError("no space left")

    assert factory._settle(UNIT, work).status == "error"
    assert factory.done.get("key") is None
    assert factory.failures == {"key": "tiny: OSError: no space left"}


def test_a_stopped_run_is_not_tried_again(factory: Factory):
    tries = []

    def work() -> dict[str, object]:
        tries.append(1)
        raise SandboxStoppedError

    with pytest.raises(SandboxStoppedError):
        factory._settle(UNIT, work)
    assert len(tries) == 1


def test_what_is_done_is_not_done_again(factory: Factory):
    tries = []

    def work() -> dict[str, object]:
        tries.append(1)
        return {"status": "rejected"}

    statuses = [factory._settle(UNIT, work).status for _ in range(3)]
    assert statuses == ["rejected"] * 3
    assert len(tries) == 1


@pytest.mark.parametrize("again", [True, False])
def test_a_new_run_forgets_what_may_be_cured_by_now_and_that_alone(
    factory: Factory, repo: Repo, again: bool
):
    factory.done.put(factory.prepare_key(repo), {"status": "rejected", "again": again})
    factory.start([repo])
    assert (factory.done.get(factory.prepare_key(repo)) is None) == again


def test_a_folder_that_changes_is_other_work(factory: Factory, repo: Repo, sandbox: Sandbox):
    before = factory.prepare_key(repo)
    assert Factory(factory.settings, sandbox=sandbox).prepare_key(repo) == before
    (Path(repo.source.location) / "a.py").write_text("A = 22\n")
    assert Factory(factory.settings, sandbox=sandbox).prepare_key(repo) != before


def test_what_is_no_source_in_a_folder_changes_nothing(
    factory: Factory, repo: Repo, sandbox: Sandbox
):
    before = factory.prepare_key(repo)
    tree = Path(repo.source.location)
    names = (".git/index", "sub/__pycache__/a.pyc", ".pytest_cache/v", ".coverage", "a.pyc")
    for name in (*names, "tiny.egg-info/PKG-INFO"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("")
    assert Factory(factory.settings, sandbox=sandbox).prepare_key(repo) == before


def test_a_manifest_and_its_folders_are_the_same_work_anywhere(
    factory: Factory, sandbox: Sandbox, tmp_path: Path
):
    one, two = tmp_path / "one", tmp_path / "two"
    (one / "tree").mkdir(parents=True)
    (one / "tree" / "a.py").write_text("A = 1\n")
    text = '[[repo]]\nname = "a"\nlicence = "MIT"\npython = "3.11"\n'
    other = text.replace('"a"', '"b"')
    pinned = f'git = "tree"\ncommit = "{"a" * 40}"\n'
    (one / "m.toml").write_text(f'{text}path = "tree"\n{other}{pinned}')
    shutil.copytree(one, two)
    repos = load_manifest(one / "m.toml")
    assert load_manifest(two / "m.toml") == repos
    keys = set()
    for folder in (one, two):
        settings = dataclasses.replace(factory.settings, manifest_folder=folder)
        keys.add(tuple(map(Factory(settings, sandbox=sandbox).prepare_key, repos)))
    assert len(keys) == 1


def test_the_seed_and_the_number_of_tasks_are_other_work(
    factory: Factory, repo: Repo, sandbox: Sandbox
):
    keys = {factory.prepare_key(repo)}
    for change in (Choice(seed=1), Choice(max_tasks=3), Choice(kinds=("class",))):
        settings = dataclasses.replace(factory.settings, choice=change)
        keys.add(Factory(settings, sandbox=sandbox).prepare_key(repo))
    assert len(keys) == 4


def test_pooled_evidence_is_other_work_on_the_same_slots_of_the_same_preparation(
    factory: Factory, prepared: Prepared, sandbox: Sandbox
):
    units = {}
    for mode in get_args(EvidenceMode):
        settings = dataclasses.replace(factory.settings, evidence=mode)
        other = Factory(settings, sandbox=sandbox)
        key = other.prepare_key(prepared.repo)
        other.done.put(key, {"status": "ok", "prepared": to_row(prepared)})
        envelope = Envelope(stage="prepare", repo="pantry", status="ok", key=key)
        units[mode] = list(other.units(envelope))
    everything = list(range(len(prepared.slots)))
    assert [it.slots for it in units["individual"]] == [(number,) for number in everything]
    assert sorted(slot for it in units["pooled"] for slot in it.slots) == everything
    assert len(units["pooled"]) < len(units["individual"])
    assert {it.prepared for it in units["individual"]} == {it.prepared for it in units["pooled"]}
    assert {it.key for it in units["individual"]}.isdisjoint(it.key for it in units["pooled"])
