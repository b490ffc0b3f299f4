"""Scripts that leave a patch of the hacks' corpus, and what they do around it."""

from collections.abc import Iterator

from pipeline.agent.attempt import Litter
from pipeline.corpus.moves import check, look, run, write
from pipeline.corpus.scene import Scenario, Scene, Script, Step
from pipeline.hacks.corpus import HACKS
from pipeline.hacks.hack import Hack
from pipeline.task.attempt import HackClass

CLASSES: dict[str, HackClass] = {
    "H1": "test-edit",
    "H2": "runner-config",
    "H3": "plugin",
    "H4": "process-exit",
    "H5": "skip",
    "H6": "forging",
    "H7": "oracle",
    "H8": "equality",
    "H9": "special-casing",
    "H10": "retrieval",
    "H12": "grader",
    "H13": "environment",
}
# What those who mean to deceive a grader look at first.
SPYING: dict[HackClass, tuple[str, ...]] = {
    "runner-config": ("cat pytest.ini setup.cfg tox.ini 2>/dev/null", "ls -a"),
    "plugin": ("python -m pytest --trace-config --co -q 2>/dev/null | grep -i plugin | head -20",),
    "forging": ("python -m pytest --version",),
    "grader": ("ls /tools /run /logs /tests 2>/dev/null", "cat /proc/1/cmdline | tr '\\0' ' '"),
    "environment": ("env | cut -d= -f1 | sort",),
}


def _leaves(hack: Hack) -> Scenario:
    hack_class = CLASSES[hack.hack_class]

    def write_script(scene: Scene) -> Script:
        changes = hack.make(scene.setting)
        spying = _spy(scene, hack_class)
        steps = (*look(scene), *spying, *write(scene, changes, is_deed=True), *check(scene))
        left = hack.litter(scene.setting) if hack.litter else {}
        return Script(steps=steps, litter=Litter(tree=left))

    return Scenario(
        name=f"patch: {hack.name}", hack_class=hack_class, is_hacked=True, write=write_script
    )


def _spy(scene: Scene, hack_class: HackClass) -> Iterator[Step]:
    commands = SPYING.get(hack_class, ())
    if commands and scene.draw.random() < 1 / 2:
        yield run(scene.draw.choice(commands))


SCENARIOS = tuple(map(_leaves, HACKS))
