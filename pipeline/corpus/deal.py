"""Deal scenarios to Tasks in pairs: a hack, and an honest attempt that looks like it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from pipeline.corpus import fetching, near, patches, retrieval
from pipeline.corpus.scene import Scenario, Scene, Script
from pipeline.hacks.setting import Setting, set_up
from pipeline.task.attempt import HackClass
from pipeline.task.canonical import content_id
from pipeline.task.grade import Desk
from pipeline.task.record import Task
from pipeline.task.solve_tree import solve_tree
from pipeline.task.tree import read_tree

HACKED = (*retrieval.SCENARIOS, *fetching.SCENARIOS, *patches.SCENARIOS)
BENIGN = near.SCENARIOS
CLASSES: tuple[HackClass, ...] = tuple(dict.fromkeys(it.hack_class for it in HACKED))
# Features that a stub and an honest rewrite can be written for by script.
KINDS = frozenset({"function", "function group", "method", "method group", "class"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A Task that scenarios can be played on."""

    task: Task
    desk: Desk
    setting: Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One attempt to be made."""

    host: Host
    scenario: Scenario
    script: Script
    pair: str
    # Which of the attempts at its Task, in an order that tells nothing.
    number: int


def open_host(task: Task, desk: Desk) -> Host | None:
    """Lay a Task out for scripts; None where they would not know what to write."""
    if task.feature.kind not in KINDS:
        return None
    setting = set_up(task, solve_tree(task, read_tree(desk.tree)))
    is_fit = setting.tests and all(setting.gold.get(it.path) for it in setting.symbols)
    return Host(task=task, desk=desk, setting=setting) if is_fit else None


def deal(hosts: Sequence[Host], *, num_pairs: int, seed: int) -> tuple[Entry, ...]:
    """Choose scenarios and Tasks: classes and repositories in turn, the rest drawn from the seed.

    Raises:
        ValueError: no Task has a place for a scenario.
    """
    by_repo: dict[str, list[Host]] = {}
    for host in sorted(hosts, key=lambda it: content_id(seed, it.task.id)):
        by_repo.setdefault(host.task.repo.name, []).append(host)
    cast = [it for number in range(num_pairs) for it in _pair(number, by_repo, seed=seed)]
    numbers: Counter[str] = Counter()
    entries = {}
    for key in sorted(range(len(cast)), key=lambda it: content_id(seed, "order", it)):
        host, scenario, script, pair = cast[key]
        entries[key] = Entry(
            host=host, scenario=scenario, script=script, pair=pair, number=numbers[host.task.id]
        )
        numbers[host.task.id] += 1
    return tuple(entries[key] for key in range(len(cast)))


Part = tuple[Host, Scenario, Script, str]


def _pair(number: int, by_repo: Mapping[str, Sequence[Host]], *, seed: int) -> tuple[Part, Part]:
    """Return a hack and its near miss, and the Task of both."""
    hack_class, turn = CLASSES[number % len(CLASSES)], number // len(CLASSES)
    hacked = _in_turn(HACKED, hack_class, turn, seed=seed)
    benign = _in_turn(BENIGN, hack_class, turn, seed=seed)
    repos = sorted(by_repo)
    hosts = by_repo[repos[number % len(repos)]]
    for shift in range(len(hosts)):
        host = hosts[(number // len(repos) + shift) % len(hosts)]
        name = f"{hack_class}-{turn}"
        bad = hacked.write(_scene(host, hacked, name, seed=seed))
        good = benign.write(_scene(host, benign, name, seed=seed))
        if bad and good:
            return (host, hacked, bad, name), (host, benign, good, name)
    raise ValueError(f"no Task of {repos[number % len(repos)]} has a place for {hacked.name!r}")


def _in_turn(
    scenarios: Sequence[Scenario], hack_class: HackClass, turn: int, *, seed: int
) -> Scenario:
    """Return the next scenario of a class, each once before any comes again."""
    mine = [it for it in scenarios if it.hack_class == hack_class]
    ordered = sorted(mine, key=lambda it: content_id(seed, it.name))
    return ordered[turn % len(ordered)]


def _scene(host: Host, scenario: Scenario, pair: str, *, seed: int) -> Scene:
    drawn = content_id(seed, host.task.id, scenario.name, pair)
    return Scene(task=host.task, setting=host.setting, draw=Random(drawn))  # noqa: S311  no secret
