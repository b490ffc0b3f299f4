"""Put together what `regrow bench trainer` claims."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import get_args

from pipeline.task.claims import Claim, Report, at_least, at_most
from trainer.bench.speed.against_trl import Duel, replayed, sampled
from trainer.bench.speed.hints import Cost, measure_hints
from trainer.bench.speed.long import LONG, SHORT
from trainer.bench.speed.memory import VOCABULARY, peak_bytes
from trainer.bench.speed.models import Size
from trainer.bench.speed.trl import require_peer

# Tokens whose logits are held at once, where memory is measured.
CHUNK = 128
# What a token of a chunk takes: its logits, and their exponentials, in fp32.
BYTES_OF_LOGIT = 8
MEBIBYTE = 2**20

Row = tuple[object, ...]


def measure(folder: Path, *, quick: bool, peer: Path | None = None) -> Report:
    """Measure trained tokens a CPU second, the cost of hints, and the peak memory of the loss.

    `peer` is a virtual environment that has TRL; without one nothing is claimed about it.

    Raises:
        ValueError: the peer is no virtual environment.
        PeerFailedError: TRL stopped with an error.
    """
    if peer is not None:
        require_peer(peer)
    duels = [] if peer is None else list(_duels(folder, quick=quick, peer=peer))
    sizes = get_args(Size)[: 1 if quick else None]
    costs = {
        size: measure_hints(folder / f"hints-{size}", size=size, shape=SHORT if quick else LONG)
        for size in sizes
    }
    many = 1024 if quick else 4096
    peaks = {tokens: peak_bytes(tokens, chunk=CHUNK) for tokens in (many // 8, many)}
    return Report(
        bench="trainer",
        claims=(*_trl_claims(duels), *_cost_claims(costs), *_memory_claims(peaks)),
        columns=("what", "ours", "against", "it"),
        rows=(
            *map(_duel_row, duels),
            *(row for size, cost in costs.items() for row in _cost_rows(size, cost)),
            *(_memory_row(tokens, peak) for tokens, peak in peaks.items()),
        ),
    )


def _duels(folder: Path, *, quick: bool, peer: Path) -> Iterator[Duel]:
    num_steps = 3 if quick else 8
    yield replayed(folder / "replayed-tiny", size="tiny", peer=peer, num_steps=num_steps)
    if not quick:
        yield replayed(folder / "replayed-small", size="small", peer=peer, num_steps=3)
    new_tokens = 16 if quick else 128
    yield sampled(folder / "sampled", peer=peer, num_steps=num_steps, new_tokens=new_tokens)


def _trl_claims(duels: Sequence[Duel]) -> Iterator[Claim]:
    for duel in duels:
        claim = f"trained tokens a CPU second over TRL's, {duel.work}"
        yield at_least(claim, duel.ours / duel.theirs, 1.5)
        if duel.apart is not None:
            yield at_most(f"norm of the gradient apart from TRL's, {duel.work}", duel.apart, 1e-5)


def _cost_claims(costs: Mapping[str, Cost]) -> Iterator[Claim]:
    for size, cost in costs.items():
        yield at_most(f"cost of hints, share of a long step, {size}", cost.added, 0.1)


def _memory_claims(peaks: Mapping[int, int]) -> Iterator[Claim]:
    few, many = sorted(peaks)
    taken = BYTES_OF_LOGIT * CHUNK * VOCABULARY
    claim = "peak memory of the loss over what its chunk takes, 128k vocabulary"
    yield at_most(claim, peaks[many] / taken, 1.1)
    yield at_most(
        "the same peak over that of an eighth of the tokens", peaks[many] / peaks[few], 1.1
    )


def _duel_row(duel: Duel) -> Row:
    what = f"trained tokens a CPU second, {duel.work}"
    return (what, round(duel.ours), "TRL", round(duel.theirs))


def _cost_rows(size: str, cost: Cost) -> Iterator[Row]:
    tokens = f"{size}, {cost.num_tokens} tokens"
    yield (f"CPU s to sample, {tokens}", round(cost.rollout_s, 2), "", "")
    yield (
        f"CPU s of the update, {size}, {cost.num_targets} targets",
        round(cost.hinted_s, 2),
        "without targets",
        round(cost.plain_s, 2),
    )
    yield (
        f"CPU s of the teacher, {size}, {cost.num_targets} targets",
        round(cost.shared_s, 2),
        "nothing shared",
        round(cost.separate_s, 2),
    )


def _memory_row(tokens: int, peak: int) -> Row:
    what = f"peak MiB of the loss, {tokens} tokens"
    return (what, round(peak / MEBIBYTE), "all logits", round(4 * tokens * VOCABULARY / MEBIBYTE))
