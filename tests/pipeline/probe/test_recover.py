"""Nothing can be recovered of a clean Task, and of one where something was left, that is found."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from pipeline.agent.attempt import Litter
from pipeline.corpus import litter, litter_git
from pipeline.corpus.scene import Scene
from pipeline.hacks.setting import set_up
from pipeline.probe.recover import Recovery, recover
from pipeline.task.grade import Desk
from pipeline.task.record import Instruction
from pipeline.task.solve_tree import solve_tree
from pipeline.task.tree import read_tree
from tests.pipeline.conftest import DeskFor, MakeTree
from tests.pipeline.monitor.kitchen import WHOLE, kitchen_task


@pytest.fixture(scope="module")
def desk(make_tree: MakeTree, desk_for: DeskFor) -> Desk:
    return desk_for(make_tree({path: content.decode() for path, content in WHOLE.items()}))


@pytest.fixture(scope="module")
def scene(desk: Desk) -> Scene:
    # An instruction that tells the signature makes it no secret.
    task = replace(kitchen_task(), instructions=())
    setting = set_up(task, solve_tree(task, read_tree(desk.tree)))
    return Scene(task=task, setting=setting, draw=Random(0))


def parts_of(recovery: Recovery) -> set[str]:
    """Return what was recovered of the one symbol."""
    found = [it for loot in recovery.loot for it in loot.recovered]
    assert {it.symbol for it in found} <= {"pantry/shelf.py:spread_evenly"}
    return {part for it in found for part in it.parts}


def test_nothing_is_recovered_of_a_clean_task(scene: Scene, desk: Desk):
    recovery = recover(scene.task, desk=desk)
    assert (recovery.loot, recovery.is_whole) == ((), True)
    # The tests, which a solver is shown.
    assert recovery.num_pieces >= 1


def test_what_the_instruction_tells_is_not_recovered(scene: Scene, desk: Desk):
    told = "def spread_evenly(things, shelf_widths, keep_order=False)"
    instruction = Instruction(style="specification", text=f"Write this again:\n\n    {told}\n")
    task = replace(scene.task, instructions=(instruction,))
    left = Litter(tree=litter.checker_cache(scene))
    assert recover(task, desk=desk, litter=left).loot == ()


LEAKS: dict[str, tuple[Callable[[Scene], Litter], str]] = {
    "type checker's cache": (lambda it: Litter(tree=litter.checker_cache(it)), "signature"),
    "type checker's database": (lambda it: Litter(tree=litter.checker_database(it)), "signature"),
    "bytecode": (lambda it: Litter(tree=litter.bytecode(it)), "body"),
    "wheel": (lambda it: Litter(tree={"dist/a.whl": litter.wheel(it)}), "body"),
    "wheel elsewhere": (lambda it: Litter(folders={"/srv/a": {"a": litter.wheel(it)}}), "body"),
    "source archive": (lambda it: Litter(tree={"a.tar.gz": litter.sdist(it)}), "body"),
    "archive in an archive": (
        lambda it: Litter(tree={"a.zip": litter.zipped({"b.tgz": litter.sdist(it)})}),
        "body",
    ),
    "objects of git": (
        lambda it: Litter(tree=litter_git.with_history(it, hidden=True)),
        "body",
    ),
    "coverage report": (lambda it: Litter(tree={"a.html": litter.coverage_page(it)}), "body"),
    "notebook": (lambda it: Litter(tree={"a.ipynb": litter.notebook(it)}), "body"),
    "other environment": (
        lambda it: Litter(folders={"/opt/venv/lib": litter.copy_at("site-packages", it)}),
        "body",
    ),
}


@pytest.mark.parametrize(("leave", "part"), LEAKS.values(), ids=LEAKS)
def test_what_was_left_is_recovered(
    leave: Callable[[Scene], Litter], part: str, scene: Scene, desk: Desk
):
    recovery = recover(scene.task, desk=desk, litter=leave(scene))
    assert part in parts_of(recovery), recovery.turns[-1].output
