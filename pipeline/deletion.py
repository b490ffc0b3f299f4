"""Let the scripted agent delete a Feature, and take what it did as a patch: Deletion."""

import re
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath

from pipeline.agent.edits import edits_between
from pipeline.agent.loop import Done, ScriptedPolicy, run_agent
from pipeline.agent.tools import Answer, Call, Workbench
from pipeline.language.python.build_files import find_packaged
from pipeline.language.python.cut import Cuts, cut
from pipeline.language.python.layout import lay_out, module_name
from pipeline.language.python.lint import new_findings
from pipeline.language.python.seams import Plan
from pipeline.language.python.sources import decode_sources, package_files
from pipeline.language.python.text import parse
from pipeline.sandbox.protocol import SandboxBrokenError
from pipeline.task.grade import Desk, changed_limits
from pipeline.task.patch import is_protected, make_patch, num_removed_lines
from pipeline.task.record import Baseline, Deletion, Feature, Turn
from pipeline.task.reject import Reject
from pipeline.task.suite import lasting
from pipeline.task.tree import Changes, apply_changes, changes_between, copied_tree, read_tree

# What `import_modules` says when there is nothing to say.
ALL_IMPORT = "all import"
MAX_TURNS = 200
MAX_REPAIRS = 3

Script = Generator[Call, Answer, Done]

CANNOT_IMPORT = re.compile(r"cannot import name '(\w+)'")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """What the agent left: the Deletion and the transcript."""

    deletion: Deletion
    turns: tuple[Turn, ...]


def delete_feature(
    feature: Feature, plan: Plan, *, baseline: Baseline, desk: Desk
) -> Deleted | Reject:
    """Give the agent a work tree and the tools; return the patch it made, or why it gave up."""
    before = read_tree(desk.tree)
    if named := find_packaged(before, plan.files, import_roots=desk.bench.import_roots):
        return Reject(stage="deletion", reason="named_by_packaging", detail=named)
    removed = {it.path for it in plan.files if it.is_removed}
    modules = find_modules(feature, before, import_roots=desk.bench.import_roots, without=removed)
    job = _Job(
        feature=feature,
        plan=plan,
        texts={path: before[path].decode() for path, _ in plan.new_sources},
        modules=modules,
        broken_before=partial(_broken_modules, desk, modules),
        mentioning=_mentioning(feature, plan, before, baseline=baseline),
    )
    with _workbench(desk) as workbench:
        done, turns = run_agent(ScriptedPolicy(delete(job)), workbench, max_turns=MAX_TURNS)
        if done.reason:
            return Reject(stage="deletion", reason=done.reason, detail=done.detail)
        changes = changes_between(before, workbench.finish().files)
    if undefined := find_undefined(before, changes):
        return Reject(stage="deletion", reason="undefined_name", detail=undefined)
    return Deleted(deletion=make_deletion(before, changes, plan=plan), turns=turns)


@contextmanager
def _workbench(desk: Desk) -> Iterator[Workbench]:
    with copied_tree(desk.tree, scratch=desk.scratch, sandbox=desk.sandbox) as folder:
        yield Workbench(
            folder,
            bench=desk.bench,
            bytecode=desk.bench.bytecode / "tree",
            sandbox=desk.sandbox,
            limits=changed_limits(desk.bench.command.wall_s),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """What the scripted agent is told."""

    feature: Feature
    plan: Plan
    # The files that change as they are.
    texts: dict[str, str]
    # Importable names of the package's modules.
    modules: tuple[str, ...]
    # Says what of them does not import as it is; asked only when something does not afterwards.
    broken_before: Callable[[], frozenset[str]]
    # Other tests than the feature's in files that mention what is gone.
    mentioning: tuple[str, ...]


def _broken_modules(desk: Desk, modules: tuple[str, ...]) -> frozenset[str]:
    with _workbench(desk) as workbench:
        answer = workbench.use(_import(modules, thought="Which modules import as they are?"))
    return _failures(answer)


def _failures(answer: Answer) -> frozenset[str]:
    return frozenset(answer.output.split("\n")) - {ALL_IMPORT}


def _mentioning(
    feature: Feature, plan: Plan, files: Mapping[str, bytes], *, baseline: Baseline
) -> tuple[str, ...]:
    """Return the tests, the feature's own aside, that a deletion may keep from being collected."""
    names = "|".join(map(re.escape, sorted(gone_names(plan))))
    mentions = re.compile(rf"\b({names})\b".encode())
    targets = set(feature.tests)
    found: dict[str, bool] = {}
    for key in baseline.passing:
        path = key.split("::")[0]
        if path not in found:
            found[path] = bool(mentions.search(files.get(path, b"")))
    return tuple(
        key for key in baseline.passing if found[key.split("::")[0]] and key not in targets
    )


def find_modules(
    feature: Feature,
    files: Mapping[str, bytes],
    *,
    import_roots: tuple[str, ...],
    without: Collection[str] = (),
) -> tuple[str, ...]:
    """Return the importable names of the modules of a Feature's package, some paths left out."""
    sources = decode_sources(files)
    package = package_files(sources, traced=(it.path for it in feature.symbols))
    layout = lay_out(sources, import_roots=import_roots)
    kept = (it for it in sorted(package.difference(without)) if it.endswith(".py"))
    return tuple(module_name(layout, it) for it in kept if not it.endswith("__main__.py"))


def find_undefined(before: Mapping[str, bytes], changes: Changes) -> str:
    """Return where changed modules, tests aside, use or export a name that is gone; else empty.

    Tests of the feature have to miss it.
    """
    for path, content in sorted(changes.items()):
        if content is None or not path.endswith((".py", ".pyi")) or is_protected(path):
            continue
        new = new_findings(before.get(path, b"").decode(), content.decode(), path=path)
        for finding in new:
            if finding.kind == "undefined name":
                return f"{finding.name} at {path}:{finding.line}"
    return ""


def make_deletion(before: dict[str, bytes], changes: Changes, *, plan: Plan) -> Deletion:
    """Turn changed files into the patch and the gold patch that undoes its unprotected part."""
    after = apply_changes(before, changes)
    undone = {path: content for path, content in before.items() if not is_protected(path)}
    kept = {path: content for path, content in after.items() if is_protected(path)}
    patch = make_patch(before, after)
    return Deletion(
        patch=patch,
        gold_patch=make_patch(after, undone | kept),
        paths=tuple(sorted(changes)),
        seams=plan.seams,
        num_removed_lines=num_removed_lines(patch),
    )


def delete(job: _Job) -> Script:
    """Work as an agent does: edit, check imports and collection, repair."""
    yield from _carry_out(job)
    after = yield _import(job.modules, thought="Does everything still import?")
    broken = _failures(after)
    if broken and (new := broken - job.broken_before()):
        return Done(reason="used_at_import", detail=lasting(min(new)))
    reason = yield from _collect(job)
    return reason or Done(reason="", detail="")


def _import(modules: tuple[str, ...], *, thought: str) -> Call:
    return Call(thought=thought, tool="import_modules", arguments={"modules": list(modules)})


def _carry_out(job: _Job) -> Generator[Call, Answer, None]:
    changes = {path: text for path, text in job.plan.new_sources if text != job.texts[path]}
    edits = {path: edits_between(job.texts[path], text) for path, text in changes.items()}
    yield from _edit(edits, thought=f"Remove {job.feature.title} and all that names it.")
    removed = [it.path for it in job.plan.files if it.is_removed]
    if removed:
        answer = yield Call(
            thought="Nothing of these files is left.",
            tool="delete_files",
            arguments={"paths": removed},
        )
        _require(answer)


def _edit(
    edits: Mapping[str, Sequence[tuple[str, str]]], *, thought: str
) -> Generator[Call, Answer, None]:
    """Make edits by path.

    Raises:
        SandboxBrokenError: the call failed, which says nothing of the feature.
    """
    rows = [
        {"path": path, "old": old, "new": new}
        for path, pairs in edits.items()
        for old, new in pairs
    ]
    if rows:
        answer = yield Call(thought=thought, tool="edit_files", arguments={"edits": rows})
        _require(answer)


def _require(answer: Answer) -> None:
    if not answer.ok:
        raise SandboxBrokenError(answer.output)


def _collect(job: _Job) -> Generator[Call, Answer, Done | None]:
    """Collect the tests beside the feature's; cut imports of gone names that still stand there."""
    for _ in range(MAX_REPAIRS if job.mentioning else 0):
        answer = yield Call(
            thought="Are the tests beside the feature's still collected?",
            tool="run_tests",
            arguments={"collect_only": True, "ids": list(job.mentioning)},
        )
        run = answer.run
        if run is None or not run.ended:
            return Done(reason="does_not_collect", detail=answer.output.split("\n")[0])
        found = set(run.collected)
        lost = [key for key in job.mentioning if key not in found]
        if not lost:
            return None
        broken = [
            (path.split("::")[0], match[1])
            for path, text in run.collect_errors
            if (match := CANNOT_IMPORT.search(text)) and match[1] in gone_names(job.plan)
        ]
        broken = [(path, name) for path, name in broken if path.endswith(".py")]
        if not broken:
            why = next((f": {lasting(text)}" for _, text in run.collect_errors), "")
            detail = f"{len(lost)} other tests are not collected, first: {lost[0]}{why}"
            return Done(reason="does_not_collect", detail=detail)
        for path, name in broken:
            yield from _repair(path, name)
    if job.mentioning:
        return Done(reason="does_not_collect", detail=f"still broken after {MAX_REPAIRS} repairs")
    return None


def _repair(path: str, name: str) -> Generator[Call, Answer, None]:
    answer = yield Call(
        thought=f"{path} has to change.", tool="read_file", arguments={"path": path}
    )
    _require(answer)
    edits = edits_between(answer.output, _cut_import(answer.output, name=name))
    yield from _edit({path: edits}, thought=f"Remove the import of {name}.")


def _cut_import(text: str, *, name: str) -> str:
    """Cut the imports of a name; a file that this Python cannot parse stays as it is."""
    if parse(text) is None:
        return text
    return cut(text, Cuts(is_gone_import=lambda binding: binding.target == name))


def gone_names(plan: Plan) -> frozenset[str]:
    """Return the last parts of the names of what goes, and of modules their dotted names too.

    An option that is passed by its place is missed by the name of the function.
    """
    if plan.option:
        names = {plan.option, *(it.symbol.qualname for it in plan.definitions)}
        return frozenset(names | {name for file in plan.files for name in file.symbols})
    names = {name.rpartition(".")[2] for file in plan.files for name in file.symbols}
    names |= {name for file in plan.files for name in file.constants}
    for path in (it.path for it in plan.files if it.is_removed):
        parts = PurePosixPath(path.removesuffix("/__init__.py")).with_suffix("").parts
        names |= {parts[-1], *(".".join(parts[start:]) for start in range(len(parts)))}
    return frozenset(names)
