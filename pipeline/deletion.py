"""Let the scripted agent delete a Feature, and take what it did as a patch: Deletion."""

import re
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from functools import partial

from pipeline.agent.edits import edits_between
from pipeline.agent.loop import Done, ScriptedPolicy, run_agent
from pipeline.agent.tools import Answer, Call, Workbench
from pipeline.language.python.cut import Cuts, cut
from pipeline.language.python.layout import lay_out, module_name
from pipeline.language.python.seams import Plan, edit_file
from pipeline.language.python.sources import decode_sources, package_files
from pipeline.language.python.text import parse
from pipeline.sandbox.protocol import SandboxBrokenError
from pipeline.task.grade import Desk, changed_limits
from pipeline.task.patch import is_protected, make_patch, num_removed_lines
from pipeline.task.record import Baseline, Deletion, Feature, Reject, Turn
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
    limits = changed_limits(desk.bench.command.wall_s)
    before = read_tree(desk.tree)
    modules = find_modules(feature, before, import_roots=desk.bench.import_roots)
    with copied_tree(desk.tree, scratch=desk.scratch, sandbox=desk.sandbox) as folder:
        workbench = Workbench(
            folder,
            bench=desk.bench,
            bytecode=desk.bench.bytecode / "tree",
            sandbox=desk.sandbox,
            limits=limits,
        )
        script = delete(feature, plan, baseline=baseline, modules=modules)
        done, turns = run_agent(ScriptedPolicy(script), workbench, max_turns=MAX_TURNS)
        if done.reason:
            return Reject(stage="deletion", reason=done.reason, detail=done.detail)
        changes = changes_between(before, workbench.finish().files)
    return Deleted(deletion=make_deletion(before, changes, plan=plan), turns=turns)


def find_modules(
    feature: Feature, files: Mapping[str, bytes], *, import_roots: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the importable names of the modules of a Feature's package."""
    sources = decode_sources(files)
    package = package_files(sources, traced=(it.path for it in feature.symbols))
    layout = lay_out(sources, import_roots=import_roots)
    paths = (it for it in sorted(package) if it.endswith(".py") and not it.endswith("__main__.py"))
    return tuple(module_name(layout, path) for path in paths)


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


def delete(feature: Feature, plan: Plan, *, baseline: Baseline, modules: tuple[str, ...]) -> Script:
    """Work as an agent does: look around, edit, check imports and collection, run the tests."""
    symbol = feature.symbols[0]
    thought = f"Where is {symbol.name} defined, imported and exported?"
    yield Call(thought=thought, tool="search", arguments={"text": symbol.name})
    before = yield _import(modules, thought="Which modules import as they are?")
    for path in (it.path for it in plan.files):
        yield from _edit(path, partial(_carry_out, path, plan=plan))
    after = yield _import(modules, thought="Does everything still import?")
    broken = set(after.output.split("\n")) - {*before.output.split("\n"), ALL_IMPORT}
    if broken and before.ok:
        return Done(reason="used_at_import", detail=lasting(min(broken)))
    reason = yield from _collect(plan, feature=feature, baseline=baseline)
    if reason is not None:
        return reason
    return (yield from _run_targets(feature))


def _import(modules: tuple[str, ...], *, thought: str) -> Call:
    return Call(thought=thought, tool="import_modules", arguments={"modules": list(modules)})


def _carry_out(path: str, text: str, *, plan: Plan) -> str:
    return edit_file(path, text, plan)


def _cut_import(text: str, *, name: str) -> str:
    """Cut the imports of a name; a file that this Python cannot parse stays as it is."""
    if parse(text) is None:
        return text
    return cut(text, Cuts(is_gone_import=lambda binding: binding.target == name))


def _edit(path: str, change: Callable[[str], str]) -> Generator[Call, Answer, None]:
    """Read a file, and make the edits that turn it into what `change` returns.

    Raises:
        SandboxBrokenError: a call failed, which says nothing of the feature.
    """
    answer = yield Call(
        thought=f"{path} has to change.", tool="read_file", arguments={"path": path}
    )
    edits = edits_between(answer.output, change(answer.output)) if answer.ok else ()
    for old, new in edits:
        if answer.ok:
            answer = yield Call(
                thought="Remove what belongs to the feature.",
                tool="edit_file",
                arguments={"path": path, "old": old, "new": new},
            )
    if not answer.ok:
        raise SandboxBrokenError(f"{path}: {answer.output}")


def _collect(
    plan: Plan, *, feature: Feature, baseline: Baseline
) -> Generator[Call, Answer, Done | None]:
    """Collect the whole suite; cut imports of the gone names where they still stand, or give up."""
    for _ in range(MAX_REPAIRS):
        answer = yield Call(
            thought="Does every test file still collect?",
            tool="run_tests",
            arguments={"collect_only": True},
        )
        run = answer.run
        if run is None or not run.ended:
            return Done(reason="does_not_collect", detail=answer.output.split("\n")[0])
        found = set(run.collected)
        targets = set(feature.tests)
        lost = [key for key in baseline.passing if key not in found and key not in targets]
        if not lost:
            return None
        broken = [
            (path.split("::")[0], match[1])
            for path, text in run.collect_errors
            if (match := CANNOT_IMPORT.search(text)) and match[1] in _gone_names(plan)
        ]
        broken = [(path, name) for path, name in broken if path.endswith(".py")]
        if not broken:
            detail = f"{len(lost)} other tests are not collected, first: {lost[0]}"
            return Done(reason="does_not_collect", detail=detail)
        for path, name in broken:
            yield from _edit(path, partial(_cut_import, name=name))
    return Done(reason="does_not_collect", detail=f"still broken after {MAX_REPAIRS} repairs")


def _run_targets(feature: Feature) -> Generator[Call, Answer, Done]:
    answer = yield Call(
        thought="Do the feature's tests break now?",
        tool="run_tests",
        arguments={"ids": list(feature.tests)},
    )
    passed = (
        []
        if answer.run is None
        else [outcome.id for outcome in answer.run.outcomes if outcome.outcome == "passed"]
    )
    if passed:
        detail = f"{len(passed)} of {len(feature.tests)} targets still pass, first: {passed[0]}"
        return Done(reason="target_survives", detail=detail)
    return Done(reason="", detail="")


def _gone_names(plan: Plan) -> set[str]:
    return {name.rpartition(".")[2] for file in plan.files for name in file.symbols}
