"""Plan Muon's step for clusters of many sizes, and see at which one it is fast enough."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pipeline.task.claims import Claim, Report, at_least, at_most
from trainer.bench.muon_scale.config import ScaleConfig, read_config
from trainer.bench.muon_scale.models import Shapes, kimi_k2, read_shapes, shapes_of
from trainer.bench.muon_scale.plot import draw
from trainer.bench.muon_scale.points import Point, Policy, num_flops, point

# The smallest cluster at which a step of one trillion weights is to take `step_s`.
TARGET_GPUS = 512
# Those at which a plan is held against what no plan beats.
BOUND_GPUS = (256, 512, 1024)

COLUMNS = (
    "policy",
    "GPUs",
    "meshes",
    "step ms",
    "bound ms",
    "products ms",
    "memory ms",
    "NVLink ms",
    "network ms",
    "done/exist",
)


def measure(folder: Path, *, quick: bool = False, config: Path | None = None) -> Report:
    """Plan and simulate the steps; nothing is measured but the plans themselves.

    `config` names a TOML file with settings of `ScaleConfig`. The plot is written to
    `muon-scale.png` in the folder.

    Raises:
        ValueError: the file or the model's folder is not as it should be, or GPUs do not divide.
    """
    settings = ScaleConfig() if config is None else read_config(config)
    if quick:
        settings = settings.model_copy(update={"gpus": (16, 64), "other_widths": (16,)})
    if quick and settings.model is None:
        model = shapes_of(kimi_k2(num_layers=2), name="Kimi K2, 2 layers", groups=settings.groups)
    else:
        model = read_shapes(settings.model, groups=settings.groups)
    points = list(_points(model, settings))
    folder.mkdir(parents=True, exist_ok=True)
    draw(points, folder / "muon-scale.png", title=model.name, step_s=settings.step_s)
    return Report(
        bench="muon-scale",
        claims=tuple(claims(points, step_s=settings.step_s)),
        columns=COLUMNS,
        rows=(_model_row(model, settings), *map(_row, points)),
    )


def _points(model: Shapes, config: ScaleConfig) -> Iterator[Point]:
    policies: tuple[Policy, ...] = ("planned", "redone", "gathered")
    enough: int | None = None
    for num_gpus in sorted(config.gpus):
        for policy in policies:
            found = point(model, config, policy=policy, num_gpus=num_gpus, width=config.dense_width)
            if policy == "planned" and found.step_s <= config.step_s and enough is None:
                enough = num_gpus
            yield found
    for width in config.other_widths:
        num_gpus = enough or max(config.gpus)
        if width != config.dense_width and num_gpus % width == 0:
            yield point(model, config, policy="planned", num_gpus=num_gpus, width=width)


def claims(points: Sequence[Point], *, step_s: float) -> Iterator[Claim]:
    """Yield what the plans reach: nearness to what no plan beats, and GPUs for the step's time."""
    width = points[0].meshes.dense[1]
    by = {(it.policy, it.num_gpus): it for it in points if it.meshes.dense[1] == width}
    planned = [it for it in by.values() if it.policy == "planned"]
    for it in planned:
        if it.num_gpus in BOUND_GPUS:
            yield at_most(
                f"step at {it.num_gpus} GPUs by what no plan beats", it.step_s / it.bound_s, 1.15
            )
    fast = [it for it in planned if it.step_s <= step_s]
    fewest = min((it.num_gpus for it in fast), default=0)
    yield Claim(
        claim=f"fewest GPUs tried at which a step takes {step_s:g} s, 0 for none",
        figure=fewest,
        bar=f"<= {TARGET_GPUS}",
        holds=0 < fewest <= TARGET_GPUS,
    )
    if ("planned", TARGET_GPUS) in by:
        ours, redone = by["planned", TARGET_GPUS], by["redone", TARGET_GPUS]
        yield at_most(f"seconds of a step at {TARGET_GPUS} GPUs", ours.step_s, step_s)
        yield at_least(
            "the dual-mesh trap: seconds longer if each replica does its dense matrices itself",
            redone.step_s - ours.step_s,
            step_s / 2,
        )


def _model_row(model: Shapes, config: ScaleConfig) -> tuple[object, ...]:
    units = len(model.membership.units)
    pflop = num_flops(model, config) / 1e15
    about = f"{model.num_muon / 1e9:.1f} B weights, {units} matrices, {pflop:.2f} PFLOP once"
    return (model.name, "", about, *[""] * (len(COLUMNS) - 3))


def _row(it: Point) -> tuple[object, ...]:
    times = (it.step_s, it.bound_s, it.product_s, it.memory_s, it.link_s["nvlink"])
    return (
        it.policy,
        it.num_gpus,
        str(it.meshes),
        *(round(time * 1e3, 1) for time in (*times, it.link_s["network"])),
        round(it.repeated, 2),
    )
