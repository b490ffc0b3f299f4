"""Turn a Repo into candidate features: fetch, environment, baseline, trace, features."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.baseline import measure_baseline
from pipeline.desk import Folders, open_desk
from pipeline.environment import resolve
from pipeline.feature import Found, LeftOut, find_features
from pipeline.language.python.sources import decode_sources
from pipeline.repo import fetch
from pipeline.sandbox.protocol import Sandbox
from pipeline.selection import Choice, choose, deal_slots
from pipeline.task.origin import Environment, Repo, Snapshot
from pipeline.task.record import Baseline, Feature
from pipeline.task.reject import Reject
from pipeline.task.tree import read_tree
from pipeline.task.trial import can_withhold
from pipeline.trace import Trace, trace_path, trace_suite


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A Repo with all that its tasks share."""

    repo: Repo
    snapshot: Snapshot
    environment: Environment
    baseline: Baseline
    # Candidates in the order in which a slot tries them; a slot makes one task at most.
    slots: tuple[tuple[Feature, ...], ...]
    # Definitions that are no candidates or that no slot needs, and why.
    left_out: tuple[LeftOut, ...]
    # CPU seconds of the traced suite over the plain one.
    trace_ratio: float


def prepare_repo(
    repo: Repo, *, folders: Folders, sandbox: Sandbox, choice: Choice
) -> Prepared | Reject:
    """Run the stages that a Repo's tasks share.

    Raises:
        IndexUnreachableError, InstallError, OSError: the machine or its network failed.
        SandboxStoppedError, SandboxBrokenError: nothing was learnt about the Repo.
    """
    fetched = fetch(
        repo,
        into=folders.run,
        cache=folders.cache,
        index=folders.index,
        base=folders.manifest_folder,
    )
    if isinstance(fetched, Reject):
        return fetched
    environment = resolve(repo, fetched=fetched, cache=folders.cache, index=folders.index)
    if isinstance(environment, Reject):
        return environment
    desk = open_desk(
        fetched.snapshot, environment, command=repo.test, folders=folders, sandbox=sandbox
    )
    if isinstance(desk, Reject):
        return desk
    baseline = measure_baseline(repo, desk=desk)
    if isinstance(baseline, Reject):
        return baseline
    kept = trace_path(folders.cache, fetched.snapshot, environment, command=repo.test)
    trace = trace_suite(repo, baseline=baseline, desk=desk, kept=kept)
    if isinstance(trace, Reject):
        return trace
    found = choose_features(
        repo, environment, trace=trace, baseline=baseline, tree=desk.tree, choice=choice
    )
    slots, spare = deal_slots(found.features, max_tasks=choice.max_tasks)
    return Prepared(
        repo=repo,
        snapshot=fetched.snapshot,
        environment=environment,
        baseline=baseline,
        slots=slots,
        left_out=found.left_out + spare,
        trace_ratio=trace.cpu_ratio,
    )


def choose_features(
    repo: Repo,
    environment: Environment,
    *,
    trace: Trace,
    baseline: Baseline,
    tree: Path,
    choice: Choice,
) -> Found:
    """Find the candidates of a tree, in the order in which they are tried."""
    snapshot = read_tree(tree)
    found = find_features(
        decode_sources(snapshot),
        trace=trace,
        baseline=baseline,
        import_roots=environment.import_roots,
    )
    solid = drop_bare(found.features, snapshot)
    chosen = choose(solid.features, choice, repo=repo.name)
    return Found(
        features=chosen.features, left_out=found.left_out + solid.left_out + chosen.left_out
    )


def drop_bare(features: Sequence[Feature], snapshot: Mapping[str, bytes]) -> Found:
    """Keep the candidates of whose tests a part can be kept from a solver."""
    kept = tuple(it for it in features if can_withhold(it.tests, snapshot))
    detail = "its tests can be neither hidden nor shortened: a table of what they ask solves it"
    reject = Reject(stage="feature", reason="nothing_to_hide", detail=detail)
    bare = set(features).difference(kept)
    return Found(
        features=kept,
        left_out=tuple(LeftOut(subject=it.title, reject=reject) for it in features if it in bare),
    )
