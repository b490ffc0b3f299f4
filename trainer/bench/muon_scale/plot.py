"""Draw how long a step takes on more and more GPUs."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from trainer.bench.muon_scale.points import Point, Policy

_LABELS: dict[Policy, str] = {
    "gathered": "every rank gathers and does everything",
    "redone": "each replica does its own dense matrices",
    "planned": "planned",
}


def draw(points: Sequence[Point], path: Path, *, title: str, step_s: float) -> None:
    """Write a figure with a line a policy, and one for what no plan beats."""
    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    panel = figure.subplots()
    width = points[0].meshes.dense[1]
    lines: dict[Policy, list[Point]] = {
        policy: [it for it in points if it.policy == policy and it.meshes.dense[1] == width]
        for policy in _LABELS
    }
    for policy, line in lines.items():
        gpus = [it.num_gpus for it in line]
        panel.plot(gpus, [it.step_s for it in line], marker="o", ms=4, label=_LABELS[policy])
    gpus = [it.num_gpus for it in lines["planned"]]
    bounds = [it.bound_s for it in lines["planned"]]
    panel.plot(gpus, bounds, color="0.4", linestyle=":", label="what no plan beats")
    panel.axhline(step_s, color="0.6", linewidth=1)
    panel.set_xscale("log", base=2)
    panel.set_yscale("log")
    panel.set_xticks(gpus, [str(num) for num in gpus])
    panel.set(title=f"Muon's step, {title}", xlabel="GPUs", ylabel="seconds, simulated")
    panel.grid(alpha=0.3)
    panel.legend(fontsize=8)
    figure.savefig(path)
