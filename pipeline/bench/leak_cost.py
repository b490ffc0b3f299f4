"""Measure what a scan of common packages costs, beside a naive one of the same bytes."""

import resource
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from pipeline.bench.leak_targets import Target
from pipeline.leaks.base import BUDGET
from pipeline.leaks.gate import find_leaks
from pipeline.leaks.naive import NaiveMatcher
from pipeline.leaks.scan import Matches, Scanned, scan_roots
from pipeline.leaks.verdicts import Verdicts
from pipeline.leaks.walk import Root

# Where a solver finds packages.
SITE_PACKAGES = "/env/lib/python3.11/site-packages"
NUM_PARTS = 4
_MB = 1e6
_KB = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What scans of packages came to."""

    num_packages: int
    num_files: int
    # With what was decoded.
    num_mb: float
    # Finds that would block a Task, though the packages have nothing of it.
    num_blocks: int
    mb_per_cpu_s: float
    naive_mb_per_cpu_s: float
    peak_mb: float
    # Peak memory of the scan of all over that of the quarter that takes most.
    memory_ratio: float

    @property
    def speed_ratio(self) -> float:
        """How many times as fast as the naive scan."""
        return self.mb_per_cpu_s / self.naive_mb_per_cpu_s


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    scanned: Scanned
    cpu_s: float
    peak_bytes: int

    @property
    def mb_per_cpu_s(self) -> float:
        return self.scanned.num_bytes / _MB / self.cpu_s


def measure_cost(targets: Sequence[Target], packages: Path, *, quick: bool) -> Cost:
    """Scan packages, each quarter of them, and a quarter naively, each in a fresh process."""
    parts = sorted(packages.iterdir())
    about = sum(it.name.endswith(".dist-info") for it in parts)
    quarters = [parts] if quick else [parts[start::NUM_PARTS] for start in range(NUM_PARTS)]
    runs = [_apart(target.matcher, parts) for target in targets]
    small = [_apart(targets[0].matcher, it) for it in quarters]
    naive = _apart(NaiveMatcher({targets[0].leaked.path: targets[0].leaked.module}), quarters[0])
    return Cost(
        num_packages=about,
        num_files=runs[0].scanned.num_files,
        num_mb=runs[0].scanned.num_bytes / _MB,
        num_blocks=sum(_num_blocks(*it) for it in zip(targets, runs, strict=True)),
        mb_per_cpu_s=small[0].mb_per_cpu_s,
        naive_mb_per_cpu_s=naive.mb_per_cpu_s,
        peak_mb=runs[0].peak_bytes / _MB,
        memory_ratio=runs[0].peak_bytes / max(it.peak_bytes for it in small),
    )


def _num_blocks(target: Target, run: _Run) -> int:
    packages = frozenset({target.leaked.package})
    found = find_leaks(run.scanned.places, target.prints, packages=packages)
    return sum(it.blocks for it in found)


def _apart(matcher: Matches, parts: Sequence[Path]) -> _Run:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_scan, matcher, parts).result()


def _scan(matcher: Matches, parts: Sequence[Path]) -> _Run:
    roots = [Root(folder=it, target=f"{SITE_PACKAGES}/{it.name}") for it in parts]
    began_s = time.process_time()
    scanned = scan_roots(roots, matcher=matcher, verdicts=Verdicts(), budget=BUDGET)
    return _Run(
        scanned=scanned,
        cpu_s=time.process_time() - began_s,
        peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KB,
    )
