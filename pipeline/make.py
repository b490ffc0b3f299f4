"""Turn a candidate feature into a Task: delete, validate, describe, scan, prove."""

import hashlib
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

from pipeline.agent.loop import transcript_lines
from pipeline.certify import certify, refuse_leaks
from pipeline.deletion import Deleted, delete_feature, gone_names
from pipeline.desk import Folders
from pipeline.facts import collect_facts
from pipeline.images import with_images
from pipeline.instruction import Facts, write_instructions
from pipeline.language.python.seams import Plan
from pipeline.library import open_library, plan_feature
from pipeline.mutate import TestsAt, measure_strength
from pipeline.pool import Candidate
from pipeline.prepare import Prepared
from pipeline.prove import prove_task
from pipeline.task.canonical import content_id
from pipeline.task.files import write_whole
from pipeline.task.grade import Desk
from pipeline.task.reached import NO_LINES, Lines
from pipeline.task.record import (
    SCHEMA_VERSION,
    Deletion,
    Evidence,
    Feature,
    Grading,
    Images,
    Provenance,
    Task,
)
from pipeline.task.reject import Reject
from pipeline.task.trace_file import read_trace
from pipeline.task.trial import measure_grading
from pipeline.trace import trace_path, trace_suite
from pipeline.validate import Method, validate


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A Task in the making: its Feature is deleted, what that breaks is not known yet."""

    prepared: Prepared
    # Its tests are the prediction.
    feature: Feature
    plan: Plan
    deleted: Deleted

    @property
    def candidate(self) -> Candidate:
        """What is to be validated."""
        return Candidate(
            feature=self.feature, deletion=self.deleted.deletion, gone=gone_names(self.plan)
        )


def make_task(
    feature: Feature,
    *,
    prepared: Prepared,
    desk: Desk,
    folders: Folders,
    seed: int,
    method: Method = "fast",
) -> Task | Reject:
    """Take one candidate through all that makes it a Task, with Evidence of its own."""
    draft = draft_task(feature, prepared=prepared, desk=desk)
    if isinstance(draft, Reject):
        return draft
    evidence = validate(
        feature,
        draft.deleted.deletion,
        baseline=prepared.baseline,
        desk=desk,
        gone=draft.candidate.gone,
        method=method,
    )
    if isinstance(evidence, Reject):
        return evidence
    return finish_task(draft, evidence, desk=desk, folders=folders, seed=seed, method=method)


def draft_task(feature: Feature, *, prepared: Prepared, desk: Desk) -> Draft | Reject:
    """Plan a candidate's deletion, and have the agent carry it out."""
    library = open_library(desk.tree, prepared.environment.import_roots)
    plan = plan_feature(feature, library)
    if isinstance(plan, Reject):
        return plan
    deleted = delete_feature(feature, plan, baseline=prepared.baseline, desk=desk)
    if isinstance(deleted, Reject):
        return deleted
    return Draft(prepared=prepared, feature=feature, plan=plan, deleted=deleted)


def finish_task(
    draft: Draft,
    evidence: Evidence,
    *,
    desk: Desk,
    folders: Folders,
    seed: int,
    method: Method = "fast",
) -> Task | Reject:
    """Take a Deletion that is validated through strength, grading, instruction, scan and proof."""
    measured = (
        _measure_strength(draft, evidence, desk=desk, folders=folders)
        if method == "fast"
        else evidence
    )
    if isinstance(measured, Reject):
        return measured
    task = _write_task(draft, measured, desk=desk, seed=seed)
    if isinstance(task, Reject):
        return task
    certified = replace(task, leaks=certify(task, desk=desk, folders=folders))
    reject = refuse_leaks(certified.leaks) or prove_task(task, desk=desk, method=method)
    if reject is not None:
        return reject
    transcript = transcript_lines(draft.deleted.turns)
    write_whole(folders.run / "transcripts" / f"{task.id}.jsonl", transcript)
    return with_images(certified, desk=desk, run=folders.run)


def _measure_strength(
    draft: Draft, evidence: Evidence, *, desk: Desk, folders: Folders
) -> Evidence | Reject:
    return measure_strength(
        evidence,
        draft.deleted.deletion,
        baseline=draft.prepared.baseline,
        desk=desk,
        tests_at=trace_lines(draft.prepared, desk=desk, folders=folders),
    )


def trace_lines(prepared: Prepared, *, desk: Desk, folders: Folders) -> TestsAt:
    """Return which tests run a line, from the trace that `prepare_repo` has kept."""
    repo, snapshot = prepared.repo, prepared.snapshot
    kept = trace_path(folders.cache, snapshot, prepared.environment, command=repo.test)
    if not kept.exists():  # somebody has emptied the cache
        trace_suite(repo, baseline=prepared.baseline, desk=desk, kept=kept)
    lines = _read_lines(kept, prepared.baseline.passing)
    return lambda path, line: lines.tests_at(path, line, line)


@lru_cache(maxsize=4)
def _read_lines(kept: Path, ids: tuple[str, ...]) -> Lines:
    traced = read_trace(kept)
    return NO_LINES if traced is None else Lines(trace=traced.trace, ids=ids)


def _write_task(draft: Draft, evidence: Evidence, *, desk: Desk, seed: int) -> Task | Reject:
    """Find out how the targets that were observed can be graded, and put it all into words."""
    prepared = draft.prepared
    feature = replace(draft.feature, tests=tuple(it.id for it in evidence.fail_to_pass))
    grading = measure_grading(
        evidence.fail_to_pass,
        baseline=prepared.baseline,
        desk=desk,
        seed=seed,
        task_id=name_task(prepared, feature, draft.deleted.deletion),
    )
    if isinstance(grading, Reject):
        return grading
    facts = collect_facts(
        prepared,
        feature,
        plan=draft.plan,
        evidence=evidence,
        grading=grading,
        library=open_library(desk.tree, prepared.environment.import_roots),
    )
    return describe_task(prepared, facts, deleted=draft.deleted, grading=grading, seed=seed)


def describe_task(
    prepared: Prepared, facts: Facts, *, deleted: Deleted, grading: Grading, seed: int
) -> Task | Reject:
    """Put a Feature into words, and everything about it into a Task under its content id."""
    instructions = write_instructions(facts)
    if isinstance(instructions, Reject):
        return instructions
    return Task(
        schema_version=SCHEMA_VERSION,
        id=name_task(prepared, facts.feature, deleted.deletion),
        repo=prepared.repo,
        snapshot=prepared.snapshot,
        environment=prepared.environment,
        feature=facts.feature,
        deletion=deleted.deletion,
        evidence=facts.evidence,
        grading=grading,
        images=Images(),
        instructions=instructions,
        provenance=Provenance(
            regrow=version("regrow"),
            seed=seed,
            agent="scripted",
            transcript=hashlib.sha256(transcript_lines(deleted.turns)).hexdigest(),
        ),
    )


def name_task(prepared: Prepared, feature: Feature, deletion: Deletion) -> str:
    """Return the id of a Task: what is deleted from which Snapshot, and the targets."""
    digest = content_id(prepared.snapshot.digest, deletion.patch, feature.tests)
    return f"{prepared.repo.name}-{digest[:12]}"
