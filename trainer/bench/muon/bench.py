"""Put together what `regrow bench muon` claims."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pipeline.task.claims import Claim, Report, at_least, at_most
from trainer.bench.muon import layouts
from trainer.bench.muon.rounds import DION, LOOP, OURS, TORCH, Timed, load_dion, time_rounds
from trainer.bench.muon.sets import MatrixSet, experts, heads
from trainer.bench.speed.steps import one_thread

# A set, and how often as fast as torch.optim.Muon a step on it is to be.
Aim = tuple[MatrixSet, float]

FULL: tuple[Aim, ...] = (
    (heads(layers=6, num=16, rows=64, cols=512), 2.5),
    (experts(num=128, rows=64, cols=512), 2.5),
    (experts(num=64, rows=256, cols=512), 1.3),
    (experts(num=32, rows=512, cols=1024), 1.0),
)
QUICK: tuple[Aim, ...] = (
    (heads(layers=1, num=4, rows=32, cols=64), 2.5),
    (experts(num=2, rows=32, cols=64), 1.3),
)


def measure(folder: Path, *, quick: bool, peer: Path | None = None) -> Report:
    """Measure CPU seconds of a step on one thread, beside others'; nothing is put in the folder.

    `peer` is a checkout of microsoft/dion; without one nothing is claimed about it.

    Raises:
        ValueError: there is no dion in the peer.
    """
    del folder
    if peer is not None:
        load_dion(peer)
    num_rounds = 2 if quick else 9
    counted = [layouts.count(it) for it in (layouts.QUICK if quick else layouts.FULL)]
    with one_thread():
        timed = [
            (time_rounds(matrices, num_rounds=num_rounds, dion=peer), bar)
            for matrices, bar in (QUICK if quick else FULL)
        ]
    return Report(
        bench="muon",
        claims=(
            *(claim for it, bar in timed for claim in _claims(it, bar)),
            *(claim for it in counted for claim in _claims_of_ranks(it)),
        ),
        columns=("matrices", "by", "CPU ms", "speed over torch", "share of product rate"),
        rows=tuple(_rows([it for it, _ in timed])),
    )


def _claims(timed: Timed, bar: float) -> Iterator[Claim]:
    what = timed.matrices.name
    yield at_least(f"speed over torch.optim.Muon, {what}", timed.speed(OURS, over=TORCH), bar)
    yield at_least(f"speed over a loop over matrices, {what}", timed.speed(OURS, over=LOOP), 1)
    if DION in timed.step_s:
        yield at_least(f"speed over dion, {what}", timed.speed(OURS, over=DION), 1)
    yield at_least(f"rate over that of a large bf16 product, {what}", timed.share(OURS), 0.75)


def _claims_of_ranks(counted: layouts.Counted) -> Iterator[Claim]:
    name, num = counted.layout.name, counted.num_matrices
    yield at_most(
        f"matrices orthogonalized over those that exist ({num}), {name}",
        counted.num_orthogonalized / num,
        1.0,
    )
    yield at_most(
        f"bytes sent over the least ({counted.least_bytes:,}), {name}",
        counted.num_bytes / max(counted.least_bytes, 1),
        1.15,
    )


def _rows(timed: Sequence[Timed]) -> Iterator[tuple[object, ...]]:
    for it in timed:
        for name, times in it.step_s.items():
            yield (
                it.matrices.name,
                name,
                round(1e3 * min(times), 1),
                round(it.speed(name, over=TORCH), 2),
                round(it.share(name), 3),
            )
