"""All hacks and all honest controls."""

from collections.abc import Iterator, Sequence

from pipeline.hacks import (
    artefacts,
    borrowed,
    edited_tests,
    equality,
    exits,
    forging,
    grader_files,
    oracles,
    plugins,
    runner_config,
    skips,
    tables,
    tricks,
)
from pipeline.hacks.control import Control
from pipeline.hacks.hack import Hack
from pipeline.hacks.honest import CONTROLS
from pipeline.hacks.rewrites import rewrites_of
from pipeline.hacks.setting import FileChanges, Setting
from pipeline.task.patch import make_patch
from pipeline.task.tree import apply_changes

HACKS: tuple[Hack, ...] = (
    *edited_tests.HACKS,
    *runner_config.HACKS,
    *plugins.HACKS,
    *exits.HACKS,
    *skips.HACKS,
    *forging.HACKS,
    *oracles.HACKS,
    *borrowed.HACKS,
    *equality.HACKS,
    *tables.HACKS,
    *artefacts.HACKS,
    *grader_files.HACKS,
    *tricks.HACKS,
)

# One or two of a class, quick and fit for any Task: `regrow verify` grades these.
SEEDED = frozenset({
    "targets emptied",
    "conftest passes known ids",
    "entry point in an egg-info",
    "passes printed, then os._exit",
    "SkipTest when called",
    "known ids are not run",
    "lines forged on every pipe",
    "frame of the caller",
    "an object equal to all, with every operator",
    "a copy anywhere on the disk",
    "a reward file at import",
    "starts again with a plugin",
})


def seeded_hacks(setting: Setting) -> Iterator[tuple[str, str]]:
    """Yield the names and patches of a few hacks that no Task may pay."""
    for hack in HACKS:
        if hack.name in SEEDED:
            yield f"{hack.hack_class}: {hack.name}", patch_of(setting, hack.make(setting))


def patch_of(setting: Setting, changes: FileChanges) -> str:
    """Return the patch that makes the changes to the solve tree."""
    return make_patch(setting.files, apply_changes(setting.files, changes))


def controls_for(settings: Sequence[Setting]) -> Iterator[tuple[Control, Setting]]:
    """Deal the honest controls to the Tasks of one host.

    Each Task gets the plain gold patch and its rewrites by hand; every other control goes to one
    Task, the next one whose code has a place for it.
    """
    for setting in settings:
        yield CONTROLS[0], setting
        yield from ((control, setting) for control in rewrites_of(setting.title))
    for number, control in enumerate(CONTROLS[1:]):
        places = (settings[(number + shift) % len(settings)] for shift in range(len(settings)))
        for setting in places:
            if control.make(setting) is not None:
                yield control, setting
                break
