"""Plant copies of a Task's targets among its tests, under names that nobody can tell apart."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random, SystemRandom

from pipeline.task.record import Grading, Sentinel
from pipeline.task.solve_tree import function_of
from pipeline.task.twins import plant_twins
from pipeline.task.verdict import Defences, Twin

# How many a run draws; each makes the suite a little longer.
MAX_SENTINELS = 5
MAX_CLONES = 3
# How often a test runs after its copies: what learns from the first of them shall not know which.
LATE = 0.5
# Of a planted name: two are too easily a test's own.
NUM_WORDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """Test modules with copies in them."""

    # New content of the changed test modules, by path.
    files: dict[str, bytes]
    twins: tuple[Twin, ...]


def draw_twins(
    grading: Grading,
    files: Mapping[str, bytes],
    *,
    defences: Defences,
    drawing: Random | None = None,
) -> Planted:
    """Plant some of a Task's twins, drawn anew for each run.

    Neither names nor choice follow from a seed: a solver that could foresee them could spare them.
    Only where no solver learns, and the same is to come out twice, is there a `drawing`.
    """
    drawing = drawing or SystemRandom()
    tests = dict.fromkeys(it.test for it in grading.sentinels)
    sentinels = _spread(
        drawing.sample(grading.sentinels, len(grading.sentinels)),
        unseen=(*grading.hidden, *grading.shortened),
    )
    clones = drawing.sample(grading.clones, min(MAX_CLONES, len(grading.clones)))
    return plant(
        files,
        sentinels=tuple(sentinels) if defences.sentinels else (),
        clones=tuple(clones) if defences.clones else (),
        late=tuple(test for test in tests if drawing.random() < LATE),
        drawing=drawing,
    )


def _spread(sentinels: Sequence[Sentinel], *, unseen: Iterable[str]) -> list[Sentinel]:
    """Choose from shuffled sentinels: first one of each test that no table can be made of."""
    functions = set(map(function_of, unseen))
    first = {it.test: it for it in sentinels if it.test in functions}
    others = [it for it in sentinels if it not in first.values()]
    return [*first.values(), *others][:MAX_SENTINELS]


def plant(
    files: Mapping[str, bytes],
    *,
    sentinels: tuple[Sentinel, ...],
    clones: tuple[str, ...],
    late: tuple[str, ...] = (),
    drawing: Random | None = None,
) -> Planted:
    """Plant the given twins; the originals in `late` run after their copies."""
    modules = {it.partition("::")[0] for it in (*(it.test for it in sentinels), *clones)}
    if not modules:
        return Planted(files={}, twins=())
    names = _names({path: files[path] for path in modules}, drawing or SystemRandom())
    planted = plant_twins(files, sentinels=sentinels, clones=clones, names=names, late=late)
    return Planted(
        files=dict(planted.files),
        twins=(
            *_twins(planted.must_fail, sentinels),
            *(
                Twin(id=function_of(key), test=test, sentinel=None)
                for key, test in zip(planted.must_pass, clones, strict=True)
            ),
        ),
    )


def _twins(keys: Iterable[str], sentinels: Iterable[Sentinel]) -> Iterator[Twin]:
    for key, sentinel in zip(keys, sentinels, strict=True):
        yield Twin(id=function_of(key), test=sentinel.test, sentinel=sentinel)


def _names(modules: Mapping[str, bytes], drawing: Random) -> Iterator[str]:
    """Yield names of tests made up of the words in the names of the modules' own tests."""
    texts = [content.decode("utf-8", "replace") for content in modules.values()]
    own = {name for text in texts for name in re.findall(r"\bdef (test_\w*)", text)}
    words = sorted({word for name in own for word in name.split("_")[1:] if word} | {"case"})
    taken = " ".join(texts)
    while True:
        name = "_".join(["test", *(drawing.choice(words) for _ in range(NUM_WORDS))])
        while name in taken:
            name = f"{name}_{drawing.choice(words)}"
        taken = f"{taken} {name}"
        yield name
