"""Draw how the errors of the arms fall."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from trainer.bench.targeted.claims import Results

_TITLES = {"habits": "A good part goes to wrong names", "far": "Nearly all goes to wrong names"}
# Steps that a point of a line is the mean of.
_SMOOTHED = 5


def draw(results: Results, path: Path) -> None:
    """Write a figure with one panel a world: a line an arm, a band from least to most seed."""
    worlds = tuple(dict.fromkeys(world for world, _ in results))
    figure = Figure(figsize=(5.5 * len(worlds), 4.2), layout="constrained")
    panels = figure.subplots(1, len(worlds), sharey=True, squeeze=False)[0]
    for panel, world in zip(panels, worlds, strict=True):
        for number, arm in enumerate(arm for at, arm in results if at == world):
            errors = np.array([result.errors for result in results[world, arm]])
            _line(panel, _smooth(errors), label=arm, color=f"C{number}")
        panel.set(title=_TITLES[world], xlabel="step of 64 episodes", ylim=(0, 1))
        panel.legend(fontsize=8, ncols=2)
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("errors / calls, while training")
    figure.savefig(path)


def _smooth(errors: np.ndarray) -> np.ndarray:
    window = np.ones(_SMOOTHED) / _SMOOTHED
    return np.array([np.convolve(line, window, mode="valid") for line in errors])


def _line(panel: Axes, errors: np.ndarray, *, label: str, color: str) -> None:
    steps = np.arange(errors.shape[1]) + _SMOOTHED
    panel.plot(steps, np.median(errors, axis=0), label=label, color=color)
    panel.fill_between(steps, errors.min(0), errors.max(0), alpha=0.15, color=color, linewidth=0)
