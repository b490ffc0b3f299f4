"""Turn candidate features into Tasks: delete, validate, describe."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

from pipeline.agent.loop import transcript_lines
from pipeline.deletion import Deleted, delete_feature
from pipeline.desk import Folders, open_desk
from pipeline.feature import LeftOut, not_tried
from pipeline.images import with_images
from pipeline.instruction import Facts, write_instructions
from pipeline.language.python.body import body_lines
from pipeline.language.python.describe import describe
from pipeline.language.python.references import ReferenceIndex, index_tree
from pipeline.language.python.seams import Plan, plan_deletion
from pipeline.language.python.sources import decode_sources, package_files
from pipeline.prepare import Prepared
from pipeline.sandbox.protocol import Sandbox
from pipeline.task.files import write_whole
from pipeline.task.grade import Desk
from pipeline.task.patch import is_protected
from pipeline.task.record import (
    SCHEMA_VERSION,
    Deletion,
    Evidence,
    Feature,
    Grading,
    Images,
    Provenance,
    Reject,
    Task,
    content_id,
)
from pipeline.task.tree import read_tree
from pipeline.task.trial import measure_grading
from pipeline.uv import InstallError
from pipeline.validate import prove_task, validate


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What a slot came to."""

    # One or none.
    tasks: tuple[Task, ...]
    # Candidates tried before it, and why they failed; candidates that it made needless.
    left_out: tuple[LeftOut, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """The Python of a Snapshot, read and indexed once for all its candidates."""

    sources: dict[str, str]
    index: ReferenceIndex

    def package_of(self, feature: Feature) -> frozenset[str]:
        """Return the files of the package that a Feature is in."""
        return package_files(self.sources, traced=(it.path for it in feature.symbols))


def make_slot(
    prepared: Prepared,
    candidates: Sequence[Feature],
    *,
    folders: Folders,
    sandbox: Sandbox,
    seed: int,
) -> Made:
    """Try the candidates in order until one is a Task.

    Raises:
        SandboxStoppedError, SandboxBrokenError, OSError: the machine failed, nothing is decided.
    """
    left_out: list[LeftOut] = []
    desk = open_desk(
        prepared.snapshot,
        prepared.environment,
        command=prepared.repo.test,
        folders=folders,
        sandbox=sandbox,
    )
    if isinstance(desk, Reject):  # it was built when the Repo was prepared: the machine has changed
        raise InstallError(f"{desk.reason}: {desk.detail}")
    for number, feature in enumerate(candidates):
        result = make_task(feature, prepared=prepared, desk=desk, folders=folders, seed=seed)
        if isinstance(result, Task):
            detail = f"its slot made {result.id}"
            spare = (not_tried(it, detail) for it in candidates[number + 1 :])
            return Made(tasks=(result,), left_out=(*left_out, *spare))
        left_out.append(LeftOut(subject=feature.title, reject=result))
    return Made(tasks=(), left_out=tuple(left_out))


def make_task(
    feature: Feature, *, prepared: Prepared, desk: Desk, folders: Folders, seed: int
) -> Task | Reject:
    """Take one candidate through deletion, validation, instruction and proof."""
    roots = prepared.environment.import_roots
    library = open_library(desk.tree, roots)
    plan = plan_feature(feature, library)
    if isinstance(plan, Reject):
        return plan
    deleted = delete_feature(feature, plan, baseline=prepared.baseline, desk=desk)
    if isinstance(deleted, Reject):
        return deleted
    evidence = validate(feature, deleted.deletion, baseline=prepared.baseline, desk=desk)
    if isinstance(evidence, Reject):
        return evidence
    task_id = name_task(prepared, feature, deleted.deletion)
    grading = measure_grading(
        evidence.fail_to_pass, baseline=prepared.baseline, desk=desk, seed=seed, task_id=task_id
    )
    facts = collect_facts(
        prepared, feature, plan=plan, evidence=evidence, grading=grading, library=library
    )
    task = describe_task(prepared, facts, deleted=deleted, grading=grading, seed=seed)
    if isinstance(task, Reject):
        return task
    reject = prove_task(task, desk=desk)
    if reject is None:
        transcript = transcript_lines(deleted.turns)
        write_whole(folders.run / "transcripts" / f"{task.id}.jsonl", transcript)
    return reject or with_images(task, desk=desk, run=folders.run)


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


@lru_cache(maxsize=4)
def open_library(tree: Path, import_roots: tuple[str, ...]) -> Library:
    """Read and index the Python files of a tree."""
    sources = decode_sources(read_tree(tree))
    return Library(sources=sources, index=index_tree(sources, import_roots=import_roots))


def plan_feature(feature: Feature, library: Library) -> Plan | Reject:
    """Decide what goes with a Feature's symbols."""
    definitions = [library.index.definitions[it.path, it.qualname] for it in feature.symbols]
    plan = plan_deletion(
        definitions,
        library.sources,
        library.index,
        is_package_file=library.package_of(feature).__contains__,
    )
    if isinstance(plan, str):
        reason, _, detail = plan.partition(": ")
        return Reject(stage="deletion", reason=reason, detail=detail)
    return plan


def collect_facts(
    prepared: Prepared,
    feature: Feature,
    *,
    plan: Plan,
    evidence: Evidence,
    grading: Grading,
    library: Library,
) -> Facts:
    """Gather what the wordings may draw on, and the code that they may not repeat."""
    seed = feature.symbols[0]
    definition = library.index.definitions[seed.path, seed.qualname]
    shown = (target for target in evidence.fail_to_pass if target.id not in grading.hidden)
    symptoms = Counter(target.symptom for target in shown if target.symptom)
    return Facts(
        repo=prepared.repo.name,
        feature=feature,
        evidence=evidence,
        grading=grading,
        description=describe(
            definition,
            library.sources[seed.path],
            index=library.index,
            is_package_file=library.package_of(feature).__contains__,
        ),
        body_lines=body_lines(definition, library.sources[seed.path]),
        exports=tuple(_exports(plan, name=seed.name)),
        symptoms=tuple(text for text, _ in symptoms.most_common()),
    )


def _exports(plan: Plan, *, name: str) -> Iterator[str]:
    """Yield the places besides the definition, tests aside, that named the symbol."""
    for file in plan.files:
        if is_protected(file.path):
            continue
        if name in file.exports:
            yield f"`__all__` of `{file.path}`"
        if any(name in {it.target, it.name} for it in file.imports):
            yield f"the imports of `{file.path}`"
