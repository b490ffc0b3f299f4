"""Turn candidate features into Tasks: delete, validate, describe."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

from pipeline.agent.loop import transcript_lines
from pipeline.deletion import Deleted, delete_feature, gone_names
from pipeline.desk import Folders, open_desk
from pipeline.feature import LeftOut
from pipeline.images import with_images
from pipeline.instruction import Facts, Part, write_instructions
from pipeline.language.python.body import body_lines
from pipeline.language.python.describe import describe
from pipeline.language.python.seams import Plan
from pipeline.language.python.sources import package_files
from pipeline.language.python.symbols import Definition
from pipeline.language.python.text import split_lines
from pipeline.library import Library, open_library, plan_feature
from pipeline.mutate import TestsAt, measure_strength
from pipeline.prepare import Prepared
from pipeline.prove import prove_task
from pipeline.sandbox.protocol import Sandbox
from pipeline.selection import not_tried
from pipeline.task.files import write_whole
from pipeline.task.grade import Desk
from pipeline.task.patch import is_protected
from pipeline.task.reached import NO_LINES, Lines
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
from pipeline.task.trace_file import read_trace
from pipeline.task.tree import read_tree
from pipeline.task.trial import measure_grading, refuse_bare
from pipeline.trace import trace_path, trace_suite
from pipeline.uv import InstallError
from pipeline.validate import Method, validate


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What a slot came to."""

    # One or none.
    tasks: tuple[Task, ...]
    # Candidates tried before it, and why they failed; candidates that it made needless.
    left_out: tuple[LeftOut, ...]


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
    feature: Feature,
    *,
    prepared: Prepared,
    desk: Desk,
    folders: Folders,
    seed: int,
    method: Method = "fast",
) -> Task | Reject:
    """Take one candidate through deletion, validation, instruction and proof."""
    library = open_library(desk.tree, prepared.environment.import_roots)
    # It is asked again of the targets that are observed; here it costs no run.
    bare = refuse_bare(feature.tests, read_tree(desk.tree), seed=seed, task_id=feature.title)
    plan = bare or plan_feature(feature, library)
    if isinstance(plan, Reject):
        return plan
    deleted = delete_feature(feature, plan, baseline=prepared.baseline, desk=desk)
    if isinstance(deleted, Reject):
        return deleted
    evidence = validate(
        feature,
        deleted.deletion,
        baseline=prepared.baseline,
        desk=desk,
        gone=gone_names(plan),
        method=method,
    )
    if isinstance(evidence, Evidence) and method == "fast":
        evidence = measure_strength(
            evidence,
            deleted.deletion,
            baseline=prepared.baseline,
            desk=desk,
            tests_at=trace_lines(prepared, desk=desk, folders=folders),
        )
    if isinstance(evidence, Reject):
        return evidence
    feature = replace(feature, tests=tuple(it.id for it in evidence.fail_to_pass))
    task_id = name_task(prepared, feature, deleted.deletion)
    grading = measure_grading(
        evidence.fail_to_pass, baseline=prepared.baseline, desk=desk, seed=seed, task_id=task_id
    )
    if isinstance(grading, Reject):
        return grading
    facts = collect_facts(
        prepared, feature, plan=plan, evidence=evidence, grading=grading, library=library
    )
    task = describe_task(prepared, facts, deleted=deleted, grading=grading, seed=seed)
    if isinstance(task, Reject):
        return task
    reject = prove_task(task, desk=desk, method=method)
    if reject is None:
        transcript = transcript_lines(deleted.turns)
        write_whole(folders.run / "transcripts" / f"{task.id}.jsonl", transcript)
    return reject or with_images(task, desk=desk, run=folders.run)


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
    definitions = [library.index.definitions[it.path, it.qualname] for it in feature.symbols]
    shown = (target for target in evidence.fail_to_pass if target.id not in grading.hidden)
    symptoms = Counter(target.symptom for target in shown if target.symptom)
    bodies = (body_lines(it, library.sources[it.symbol.path]) for it in definitions)
    return Facts(
        repo=prepared.repo.name,
        feature=feature,
        evidence=evidence,
        grading=grading,
        parts=tuple(_part(it, plan, library) for it in _described(definitions)),
        body_lines=tuple(line for lines in bodies for line in lines),
        removed_files=tuple(
            it.path for it in plan.files if it.is_removed and not is_protected(it.path)
        ),
        lost_imports=tuple(_lost_imports(plan)),
        symptoms=tuple(text for text, _ in symptoms.most_common()),
    )


def _described(definitions: Sequence[Definition]) -> list[Definition]:
    """Return what a person would be told of: public names, special methods; else everything."""
    told = [it for it in definitions if not any(map(_is_private, it.symbol.qualname.split(".")))]
    return told or list(definitions)


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def _part(definition: Definition, plan: Plan, library: Library) -> Part:
    symbol = definition.symbol
    package = package_files(library.sources, traced=[symbol.path])
    return Part(
        symbol=symbol,
        description=describe(
            definition,
            library.sources[symbol.path],
            index=library.index,
            is_package_file=package.__contains__,
        ),
        exports=tuple(_exports(plan, library, name=symbol.name)),
    )


def _lost_imports(plan: Plan) -> Iterator[str]:
    """Yield the imports of files that stay which name none of the symbols."""
    names = {it.symbol.name for it in plan.definitions}
    for file in plan.files:
        if is_protected(file.path) or file.is_removed:
            continue
        for it in file.imports:
            if not names.intersection((it.target, it.name)):
                what = (
                    f"from {it.module} import {it.target}" if it.target else f"import {it.loaded}"
                )
                yield f"`{what}` in `{file.path}`"


def _exports(plan: Plan, library: Library, *, name: str) -> Iterator[str]:
    """Yield the places besides the definition, tests aside, that named the symbol."""
    for file in plan.files:
        if is_protected(file.path) or file.is_removed:
            continue
        if name in file.exports:
            yield f"`__all__` of `{file.path}`"
        if any(name in {it.target, it.name} for it in file.imports):
            yield f"the imports of `{file.path}`"
        lines = split_lines(library.sources[file.path])
        for it in file.rows:
            if name == it.text.rpartition(".")[2]:
                yield f"the entry `{lines[it.line - 1].strip().rstrip(',')}` of `{file.path}`"
