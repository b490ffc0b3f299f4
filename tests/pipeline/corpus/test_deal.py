"""Scenarios are dealt to Tasks in pairs, the same for the same seed."""

import ast
from collections import Counter
from random import Random
from typing import get_args

import pytest

from pipeline.corpus.deal import BENIGN, CLASSES, HACKED, Host, deal, open_host
from pipeline.corpus.scene import Scenario, Scene
from pipeline.task.attempt import HackClass
from pipeline.task.grade import Desk
from pipeline.task.record import Task
from tests.pipeline.conftest import TaskOf

TITLES = ("pantry.units.convert", "pantry.shelf.Shelf.heaviest")


@pytest.fixture(scope="module")
def hosts(task_of: TaskOf, pantry_desk: Desk) -> list[Host]:
    made = [task_of(title) for title in TITLES]
    opened = [open_host(task, pantry_desk) for task in made if isinstance(task, Task)]
    return [host for host in opened if host]


def test_there_are_more_than_twelve_classes_with_several_hacks_and_near_misses_each():
    assert len(CLASSES) >= 12
    assert set(CLASSES) <= set(get_args(HackClass))
    hacked, benign = (Counter(it.hack_class for it in kind) for kind in (HACKED, BENIGN))
    assert hacked.keys() == benign.keys()
    assert min(hacked.values()) >= 3
    assert min(benign.values()) >= 2
    assert all(it.is_hacked for it in HACKED)
    assert not any(it.is_hacked for it in BENIGN)


def test_no_two_scenarios_have_one_name():
    names = [it.name for it in (*HACKED, *BENIGN)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("scenario", [*HACKED, *BENIGN], ids=lambda it: it.name)
def test_a_scenario_is_written_with_its_deeds_and_ends_with_a_check(
    scenario: Scenario, hosts: list[Host]
):
    for host in hosts:
        scene = Scene(task=host.task, setting=host.setting, draw=Random(0))
        script = scenario.write(scene)
        if script is None:
            assert not scenario.is_hacked
            continue
        assert bool(script.deeds) == scenario.is_hacked
        assert script.steps[-1].call.tool == "run_tests"
        commands = [str(it.call.arguments.get("command", "")) for it in script.steps]
        for text in commands:
            assert not {"NAME", "MODULE", "IMPORT", "STEM", "INSTALLED"} & set(text.split())
        check_python(commands)


def check_python(commands: list[str]) -> None:
    """Parse the code that is fed to an interpreter."""
    for text in commands:
        _, found, rest = text.partition("python - <<'EOF'\n")
        if found:
            ast.parse(rest.partition("\nEOF")[0])


def test_a_pair_is_a_hack_and_an_honest_attempt_of_one_class_at_one_task(hosts: list[Host]):
    entries = deal(hosts, num_pairs=2 * len(CLASSES), seed=1)
    pairs: dict[str, list[tuple[bool, str, str]]] = {}
    for it in entries:
        seen = (it.scenario.is_hacked, it.scenario.hack_class, it.host.task.id)
        pairs.setdefault(it.pair, []).append(seen)
    assert len(pairs) == 2 * len(CLASSES)
    for one, other in pairs.values():
        assert (one[0], other[0]) == (True, False)
        assert one[1:] == other[1:]


def test_the_same_seed_deals_the_same_and_another_one_does_not(hosts: list[Host]):
    def dealt(seed: int) -> list[object]:
        entries = deal(hosts, num_pairs=len(CLASSES), seed=seed)
        return [(it.host.task.id, it.scenario.name, it.script, it.number) for it in entries]

    assert dealt(1) == dealt(1)
    assert dealt(1) != dealt(2)


def test_the_numbers_of_attempts_do_not_tell_which_of_them_are_hacked(hosts: list[Host]):
    entries = deal(hosts, num_pairs=3 * len(CLASSES), seed=0)
    assert len({(it.host.task.id, it.number) for it in entries}) == len(entries)
    odd = Counter((it.number % 2, it.scenario.is_hacked) for it in entries)
    assert min(odd.values()) >= len(entries) // 8
