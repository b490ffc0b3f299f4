"""Bench `leaks`: planted copies found, unrelated packages let pass, and what a scan costs."""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import track

from pipeline.bench.command import REPOS, CommandFailedError
from pipeline.bench.leak_cost import Cost, measure_cost
from pipeline.bench.leak_seeds import archives, caches, compiled, copies, documents, history, layers
from pipeline.bench.leak_seeds.seed import Leaked, Seed, Tools
from pipeline.bench.leak_targets import PYTHON_TARGETS, Target, java_target, python_target
from pipeline.index import package_index
from pipeline.leaks.base import BUDGET
from pipeline.leaks.gate import find_leaks
from pipeline.leaks.scan import scan_roots
from pipeline.leaks.verdicts import Verdicts
from pipeline.leaks.walk import Root
from pipeline.manifest import load_manifest
from pipeline.task.claims import Report, at_least, at_most
from pipeline.task.reject import Reject
from pipeline.uv import run_uv

MANIFEST = REPOS / "python.toml"
PACKAGES = Path(__file__).parent / "common_packages.txt"
NUM_QUICK_PACKAGES = 4
# What leaves something behind that is planted.
TOOLS = ("mypy", "coverage")

SEEDS: tuple[Seed, ...] = (
    *history.SEEDS, *caches.SEEDS, *archives.SEEDS, *copies.SEEDS, *documents.SEEDS,
    *compiled.SEEDS, *layers.SEEDS,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A copy that was planted, and who found it."""

    seed: Seed
    target: str
    # The part that stands there was recovered, and no Task may have it.
    is_blocked: bool
    # A line of it was found by plain grep, in the bytes as they lie there.
    is_grepped: bool


def measure(folder: Path, *, quick: bool) -> Report:
    """Plant copies and scan for them; scan packages that have none.

    Raises:
        CommandFailedError: a library, a package or a tool cannot be had.
    """
    targets = python_targets(folder, quick=quick)
    tools = _tools(folder)
    trials = [(seed, target) for target in targets for seed in SEEDS]
    trials += [(seed, it) for it in map(java_target, compiled.java_fixtures())
               for seed in compiled.JAVA_SEEDS]  # fmt: skip
    planted = [
        _plant(seed, target, folder=folder / "planted" / str(number), tools=tools)
        for number, (seed, target) in enumerate(
            track(trials, "planting", console=Console(stderr=True))
        )
    ]
    packages = _packages(folder, quick=quick)
    cost = measure_cost(targets, packages, quick=quick)
    return Report(
        bench="leaks",
        claims=(
            at_least("share of planted bodies and signatures that block",
                     round(_share(it.is_blocked for it in planted), 4), 0.98),
            at_least("times as many as plain grep finds",
                     round(sum(it.is_blocked for it in planted)
                           / max(1, sum(it.is_grepped for it in planted)), 2), 1),
            at_most(f"unrelated blocks in {cost.num_packages} packages", cost.num_blocks, 0),
            at_least("MB a CPU second over a naive scan", round(cost.speed_ratio, 1), 5),
            at_most("peak memory, all packages over the quarter that takes most",
                    round(cost.memory_ratio, 2), 1.25),
        ),
        columns=("channel", "variant", "blocked", "grep", "missed on"),
        rows=(*_rows(planted), *_cost_rows(cost)),
    )  # fmt: skip


def python_targets(folder: Path, *, quick: bool) -> list[Target]:
    """Return the features of real libraries whose copies are planted."""
    repos = {repo.name: repo for repo in load_manifest(MANIFEST)}
    wanted = PYTHON_TARGETS[:1] if quick else PYTHON_TARGETS
    return [python_target(it, repos[it.library], folder=folder) for it in wanted]


def _tools(folder: Path) -> Tools:
    place = folder / "tools"
    _uv("venv", "--python", sys.executable, str(place), folder=folder)
    python = place / "bin" / "python"
    index = ("--default-index", package_index())
    _uv("pip", "install", "--python", str(python), *index, *TOOLS, folder=folder)
    scratch = folder / "tool-scratch"
    scratch.mkdir()
    return Tools(python=python, scratch=scratch)


def _packages(folder: Path, *, quick: bool) -> Path:
    """Install common packages side by side, without what they depend on."""
    names = PACKAGES.read_text().split()
    place = folder / "packages"
    options = ("--no-deps", "--only-binary", ":all:", "--default-index", package_index())
    where = ("--target", str(place), "--python", sys.executable)
    wanted = names[:NUM_QUICK_PACKAGES] if quick else names
    _uv("pip", "install", *where, *options, *wanted, folder=folder)
    return place


def _uv(*arguments: str, folder: Path) -> None:
    done = run_uv(arguments, cache=folder / "cache", reason="install_failed")
    if isinstance(done, Reject):
        raise CommandFailedError(done.detail)


def _plant(seed: Seed, target: Target, *, folder: Path, tools: Tools) -> Planted:
    """Plant one copy into an empty folder, and scan what then lies there."""
    folder.mkdir(parents=True)
    seed.plant(target.leaked, folder, tools)
    scanned = scan_roots(
        [Root(folder=folder, target="/")],
        matcher=target.matcher,
        verdicts=Verdicts(),
        budget=BUDGET,
    )
    found = find_leaks(scanned.places, target.prints, packages=frozenset({target.leaked.package}))
    return Planted(
        seed=seed,
        target=target.leaked.name,
        is_blocked=any(it.blocks and seed.part in it.parts for it in found),
        is_grepped=_is_grepped(target.leaked, folder, seed=seed),
    )


def _is_grepped(leaked: Leaked, folder: Path, *, seed: Seed) -> bool:
    """Tell whether plain grep finds the longest line of the code, or its header."""
    lines = [line.strip() for line in leaked.code.splitlines()]
    header = next(line for line in lines if f"{leaked.name}(" in line)
    wanted = (max(lines, key=len) if seed.part == "body" else header).encode()
    return any(wanted in file.read_bytes() for file in folder.rglob("*") if file.is_file())


def _share(found: Iterator[bool]) -> float:
    counts = Counter(found)
    return counts[True] / max(counts.total(), 1)


def _rows(planted: Sequence[Planted]) -> Iterator[tuple[object, ...]]:
    for seed in dict.fromkeys(it.seed for it in planted):
        own = [it for it in planted if it.seed == seed]
        yield (
            seed.channel,
            f"{seed.variant} ({seed.part})",
            f"{sum(it.is_blocked for it in own)}/{len(own)}",
            f"{sum(it.is_grepped for it in own)}/{len(own)}",
            ", ".join(it.target for it in own if not it.is_blocked),
        )


def _cost_rows(cost: Cost) -> Iterator[tuple[object, ...]]:
    yield ("cost", f"{cost.num_files} files, {cost.num_mb:.0f} MB decoded",
           f"{cost.mb_per_cpu_s:.1f} MB/CPU s", f"{cost.naive_mb_per_cpu_s:.1f} MB/CPU s naive",
           f"{cost.peak_mb:.0f} MB peak")  # fmt: skip
