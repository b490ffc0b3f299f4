"""Bench `factory`: what a validated task costs, next to the plain way, the suite and a peer."""

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pipeline.bench.command import REPOS, CommandFailedError
from pipeline.bench.peer import Peer, PeerRun
from pipeline.bench.production import Metered, Works
from pipeline.make import draft_task
from pipeline.manifest import load_manifest
from pipeline.pool import POOL_SIZE, Candidate, make_pools, validate_pooled
from pipeline.task.claims import Claim, Report, at_least, at_most
from pipeline.task.grade import Desk
from pipeline.task.origin import Repo
from pipeline.task.record import Evidence, Feature, Task
from pipeline.task.reject import Reject
from pipeline.task.tree import read_tree
from pipeline.validate import validate

MANIFEST = REPOS / "python.toml"
QUICK_MANIFEST = REPOS / "smoke.toml"
# Small suites, one in the middle, and some of more than ten seconds.
LIBRARIES = ("boltons", "jinja2", "werkzeug", "pyrsistent", "networkx")
# Candidates of each library: as many for the fast way as for the plain one.
NUM_CANDIDATES, QUICK_CANDIDATES = 6, 2
# Libraries for the comparison of pooled with individual evidence, and candidates of each.
POOLED = ("toolz", "boltons", "more-itertools", "jinja2", "werkzeug", "tomlkit", "flask", "click")
NUM_POOLED, QUICK_POOLED = 30, 4
PEER_COLUMNS = (
    "SWE-smith candidates", "its tests", "its tasks", "its failed runs", "it generates, s",
    "it validates, s", "its CPU a task", "its tasks an hour", "times it",
)  # fmt: skip
# CPU seconds of a suite that is called long.
LONG_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What one library came to."""

    library: str
    # CPU seconds of the suite: warm, unguarded.
    suite_cpu_s: float
    fast: Metered[Task | Reject]
    plain: Metered[Task | Reject]
    # As many candidates of SWE-smith's; None where it is not at hand.
    peer: PeerRun | None

    @property
    def speedup(self) -> float:
        """Validated tasks an hour over those of the plain way."""
        return _per_hour(self.fast) / max(_per_hour(self.plain), 1e-9)

    @property
    def cpu_ratio(self) -> float:
        """CPU seconds a validated task over those of the suite."""
        return self.fast.cpu_s / max(_num_tasks(self.fast), 1) / self.suite_cpu_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Pooled and individual evidence of the same candidates of one library."""

    library: str
    individual: Metered[Evidence | Reject]
    pooled: Metered[tuple[Evidence | Reject, ...]]
    # In the order of the candidates.
    pooled_results: tuple[Evidence | Reject, ...]

    @property
    def num_tasks(self) -> int:
        """Candidates that one of the ways takes for valid."""
        return sum(any(isinstance(it, Evidence) for it in pair) for pair in self._pairs())

    @property
    def num_differing(self) -> int:
        """Those whose verdicts or targets differ."""
        return sum(_verdict(one) != _verdict(other) for one, other in self._pairs())

    def _pairs(self) -> Iterator[tuple[Evidence | Reject, Evidence | Reject]]:
        return zip(self.individual.results, self.pooled_results, strict=True)


def measure(folder: Path, *, quick: bool, peer: Path | None = None) -> Report:
    """Make tasks of the same candidates in both ways, then judge more of them in pools.

    Args:
        folder: for all that is made.
        quick: take one library and few candidates.
        peer: folder with SWE-smith, which then makes and validates as many of its own.

    Raises:
        CommandFailedError: a library gives no candidates, or the peer does not work.
        SandboxUnavailableError: there is a peer, and no engine for it.
    """
    rival = None if peer is None else Peer(peer)
    manifest = QUICK_MANIFEST if quick else MANIFEST
    repos = {repo.name: repo for repo in load_manifest(manifest)}
    names = tuple(repos) if quick else LIBRARIES
    pooled = tuple(repos) if quick else POOLED
    num, num_pooled = (QUICK_CANDIDATES, QUICK_POOLED) if quick else (NUM_CANDIDATES, NUM_POOLED)
    works = {name: _open(repos[name], folder) for name in dict.fromkeys((*names, *pooled))}
    measured = [
        _measure(name, works[name], num=num, peer=rival, folder=folder / "peer") for name in names
    ]
    compared = [_compare(name, works[name], num=num_pooled) for name in pooled]
    return _report(measured, compared)


def _open(repo: Repo, folder: Path) -> Works:
    return Works(repo, folder=folder / repo.name)


def _measure(name: str, works: Works, *, num: int, peer: Peer | None, folder: Path) -> Measured:
    features = works.candidates()[:num]
    if not features:
        raise CommandFailedError(f"{name}: no candidates, expected some")
    return Measured(
        library=name,
        suite_cpu_s=works.suite_cpu_s(),
        fast=works.produce(features, method="fast"),
        plain=works.produce(features, method="plain"),
        peer=None if peer is None else peer.run(works, name=name, num=num, folder=folder / name),
    )


def _compare(name: str, works: Works, *, num: int) -> Compared:
    features = works.candidates()[:num]
    deleted = works.meter(partial(_delete, works), features).results
    candidates = [it for it in deleted if it is not None]
    baseline = works.prepared.baseline

    def judge(it: Candidate, desk: Desk) -> Evidence | Reject:
        return validate(it.feature, it.deletion, baseline=baseline, desk=desk, gone=it.gone)

    def judge_pool(pool: Sequence[Candidate], desk: Desk) -> tuple[Evidence | Reject, ...]:
        return validate_pooled(pool, baseline=baseline, desk=desk)

    individual = works.meter(judge, candidates)
    pools = make_pools(candidates, read_tree(works.tree()), size=POOL_SIZE)
    pooled = works.meter(judge_pool, pools)
    found = {
        it: result
        for pool, results in zip(pools, pooled.results, strict=True)
        for it, result in zip(pool, results, strict=True)
    }
    return Compared(
        library=name,
        individual=individual,
        pooled=pooled,
        pooled_results=tuple(found[it] for it in candidates),
    )


def _delete(works: Works, feature: Feature, desk: Desk) -> Candidate | None:
    draft = draft_task(feature, prepared=works.prepared, desk=desk)
    return None if isinstance(draft, Reject) else draft.candidate


def _verdict(result: Evidence | Reject) -> Evidence | str:
    """Return what two ways must agree on: all of the Evidence, of a Reject that it is one."""
    return replace(result, pooled=False) if isinstance(result, Evidence) else "rejected"


def _num_tasks(made: Metered[Task | Reject]) -> int:
    return sum(isinstance(it, Task) for it in made.results)


def _per_hour(made: Metered[Task | Reject]) -> float:
    return 3600 * _num_tasks(made) / made.wall_s


def _over_peer(made: Metered[Task | Reject], peer: PeerRun) -> float:
    return _per_hour(made) / max(peer.tasks_per_hour, 1e-9)


def _report(measured: Sequence[Measured], compared: Sequence[Compared]) -> Report:
    return Report(
        bench="factory",
        claims=(*_claims(measured), *_peer_claims(measured), *_pooled_claims(compared)),
        columns=(
            "library", "suite CPU s", "candidates", "tasks", "plain tasks", "an hour",
            "plain an hour", "times", "CPU a task", "over suite", "mutants killed", "why not",
            *(PEER_COLUMNS if any(it.peer for it in measured) else ()),
        ),
        rows=tuple(map(_row, measured)),
    )  # fmt: skip


def _claims(measured: Sequence[Measured]) -> Iterator[Claim]:
    yield at_least(
        "validated tasks an hour over the plain way, median",
        statistics.median(it.speedup for it in measured),
        4,
    )
    yield at_most(
        "CPU seconds a validated task over the suite's own, median",
        statistics.median(it.cpu_ratio for it in measured),
        1.4,
    )
    long = [it.cpu_ratio for it in measured if it.suite_cpu_s > LONG_S]
    if long:
        yield at_most(f"the same, largest of suites over {LONG_S:g} s", max(long), 1.15)


def _peer_claims(measured: Sequence[Measured]) -> Iterator[Claim]:
    speedups = [_over_peer(it.fast, it.peer) for it in measured if it.peer is not None]
    if speedups:
        yield at_least(
            "validated tasks an hour over SWE-smith's, median", statistics.median(speedups), 10
        )


def _pooled_claims(compared: Sequence[Compared]) -> Iterator[Claim]:
    num_tasks = sum(it.num_tasks for it in compared)
    yield at_least("tasks judged in pools and individually", num_tasks, 200)
    yield at_most(
        "share of them that differ", sum(it.num_differing for it in compared) / num_tasks, 0.02
    )
    yield at_most(
        "CPU seconds of pooled evidence over individual, median",
        statistics.median(it.pooled.cpu_s / it.individual.cpu_s for it in compared),
        0.8,
    )


def _row(it: Measured) -> tuple[object, ...]:
    tasks = [made for made in it.fast.results if isinstance(made, Task)]
    reasons = Counter(made.reason for made in it.fast.results if isinstance(made, Reject))
    num_mutants = sum(task.evidence.num_mutants for task in tasks)
    num_killed = sum(task.evidence.num_killed for task in tasks)
    return (
        it.library,
        round(it.suite_cpu_s, 2),
        len(it.fast.results),
        len(tasks),
        _num_tasks(it.plain),
        round(_per_hour(it.fast)),
        round(_per_hour(it.plain)),
        round(it.speedup, 1),
        round(it.fast.cpu_s / max(len(tasks), 1), 2),
        round(it.cpu_ratio, 2),
        f"{num_killed}/{num_mutants}",
        ", ".join(f"{count} {reason}" for reason, count in reasons.most_common()),
        *(() if it.peer is None else _peer_cells(it.peer, it.fast)),
    )


def _peer_cells(peer: PeerRun, made: Metered[Task | Reject]) -> tuple[object, ...]:
    return (
        peer.num_candidates,
        peer.num_tests,
        peer.num_tasks,
        peer.num_failed,
        round(peer.generate_s, 1),
        round(peer.wall_s, 1),
        round(peer.cpu_s / max(peer.num_tasks, 1), 2),
        round(peer.tasks_per_hour),
        round(_over_peer(made, peer), 1),
    )
