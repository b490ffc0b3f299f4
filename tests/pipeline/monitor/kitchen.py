"""A Task of the pantry that is made by hand, and attempts at it, for rules that run nothing."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache

from pipeline.task.attempt import Attempt
from pipeline.task.patch import make_patch
from pipeline.task.record import (
    SCHEMA_VERSION,
    Deletion,
    FailToPass,
    Instruction,
    Symbol,
    Task,
    Turn,
)
from tests.pipeline import pantry
from tests.pipeline.records import blank

Files = Mapping[str, bytes]
MakeAttempt = Callable[..., Attempt]

SNAPSHOT = {path: text.encode() for path, text in pantry.FILES.items()}
# Long enough that it can be told from what anybody would write.
SPREAD = '''

def spread_evenly(things, shelf_widths, keep_order=False):
    """Put things on shelves so that no shelf carries much more than another.

    The widest shelf is filled first; what is left over stays in the basket.
    """
    basket = sorted(things.items(), key=lambda pair: (-pair[1], pair[0]))
    loads = {width: [] for width in sorted(shelf_widths, reverse=True)}
    for thing, grams in basket:
        lightest = min(loads, key=lambda width: sum(loads[width]) / width)
        loads[lightest].append(grams)
        if keep_order and thing.startswith("jar of "):
            loads[lightest].sort(key=lambda carried: carried % 17)
    overflow = [width for width, carried in loads.items() if sum(carried) > width * 9.25]
    return {"loads": loads, "overflow": overflow or "nothing to carry down"}
'''
PATH = "pantry/shelf.py"
TESTS = """\
from pantry.shelf import spread_evenly


def test_spread():
    spread = spread_evenly({"rice": 1210, "oats": 733}, [40, 90])
    assert spread["loads"] == {90: [1210], 40: [733]}
    assert spread["overflow"] == [40, 90]


def test_spread_nothing():
    assert spread_evenly({}, [40])["loads"] == {40: []}
"""
WHOLE = {**SNAPSHOT, PATH: SNAPSHOT[PATH] + SPREAD.encode(), "tests/test_spread.py": TESTS.encode()}
ABLATED = {**WHOLE, PATH: SNAPSHOT[PATH]}


@cache
def kitchen_task() -> Task:
    symbol = Symbol(
        path=PATH, qualname="spread_evenly", kind="function", first_line=26, last_line=42
    )
    deletion = Deletion(
        patch=make_patch(WHOLE, ABLATED),
        gold_patch=make_patch(ABLATED, WHOLE),
        paths=(PATH,),
        seams=(),
        num_removed_lines=17,
    )
    targets = ("tests/test_spread.py::test_spread", "tests/test_spread.py::test_spread_nothing")
    base = blank(Task)
    return replace(
        base,
        schema_version=SCHEMA_VERSION,
        id="pantry-0123456789ab",
        repo=replace(base.repo, name="pantry"),
        feature=replace(base.feature, title="pantry.shelf.spread_evenly", symbols=(symbol,)),
        deletion=deletion,
        evidence=replace(
            base.evidence,
            fail_to_pass=tuple(
                FailToPass(id=key, ablated="failed", symptom="ImportError") for key in targets
            ),
        ),
        instructions=(
            Instruction(
                style="specification",
                text="Write `spread_evenly(things, shelf_widths, keep_order=False)` again.",
            ),
        ),
    )


def kitchen_attempt(
    *turns: Turn, changes: Mapping[str, bytes | None] | None = None, **fields: object
) -> Attempt:
    """Return an attempt: turns, and new files as the patch; further fields by name."""
    task = kitchen_task()
    after = {**ABLATED, **(changes or {})}
    patch = make_patch(ABLATED, {path: it for path, it in after.items() if it is not None})
    plain = replace(
        blank(Attempt),
        schema_version=SCHEMA_VERSION,
        id=f"{task.id}.scripted.0",
        task_id=task.id,
        agent="scripted",
        turns=turns,
        verdict="unsolved",
        patch=patch,
    )
    return replace(plain, **fields)


def call(tool: str, output: str = "", **arguments: object) -> Turn:
    return Turn(thought="", tool=tool, arguments=json.dumps(arguments), output=output)


def run(command: str, output: str = "") -> Turn:
    return call("run_command", output, command=command)
