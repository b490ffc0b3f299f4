"""Take functions of real libraries for deleted, with all that a scan looks for."""

import ast
from dataclasses import dataclass
from pathlib import Path

from pipeline.bench.command import REPOS, CommandFailedError
from pipeline.bench.leak_seeds.seed import Leaked
from pipeline.index import package_index
from pipeline.leaks.match import Matcher
from pipeline.leaks.prints import SymbolPrints, deletion_prints, snapshot_prints
from pipeline.repo import fetch
from pipeline.snapshot import snapshot_tree
from pipeline.task.origin import Repo
from pipeline.task.patch import make_patch, num_removed_lines
from pipeline.task.record import Deletion
from pipeline.task.reject import Reject
from pipeline.task.tree import read_tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A function of a library.

    Example: `Named(library="boltons", path="boltons/iterutils.py", name="backoff_iter")`.
    """

    # In `repos/python.toml`.
    library: str
    path: str
    name: str


PYTHON_TARGETS = (
    Named(library="boltons", path="boltons/iterutils.py", name="backoff_iter"),
    Named(library="toolz", path="toolz/itertoolz.py", name="reduceby"),
    Named(library="more-itertools", path="more_itertools/more.py", name="interleave_evenly"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A deleted function, and what a scan of its Snapshot looks for."""

    leaked: Leaked
    # Of what is deleted.
    prints: tuple[SymbolPrints, ...]
    # Of the whole Snapshot.
    matcher: Matcher


def python_target(named: Named, repo: Repo, *, folder: Path) -> Target:
    """Delete a function from a library.

    Raises:
        CommandFailedError: the library cannot be had, or has no such function.
    """
    cache, run = folder / "cache", folder / "run"
    fetched = fetch(repo, into=run, cache=cache, index=package_index(), base=REPOS)
    if isinstance(fetched, Reject):
        raise CommandFailedError(f"{repo.name}: {fetched.reason}: {fetched.detail}")
    archive = run / "snapshots" / f"{fetched.snapshot.digest}.tar.zst"
    snapshot = read_tree(snapshot_tree(archive, cache=cache))
    return _target(_leaked(named, snapshot), snapshot)


def java_target(leaked: Leaked) -> Target:
    """Return the target of a method that stands alone."""
    return _target(leaked, {leaked.path: leaked.module})


def _leaked(named: Named, snapshot: dict[str, bytes]) -> Leaked:
    module = snapshot.get(named.path, b"")
    lines = module.decode().splitlines(keepends=True)
    for node in ast.parse(module).body:
        if isinstance(node, ast.FunctionDef) and node.name == named.name:
            first = min([node.lineno, *(it.lineno for it in node.decorator_list)]) - 1
            rest = [*lines[:first], *lines[node.end_lineno :]]
            given = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
            return Leaked(
                path=named.path,
                module=module,
                ablated="".join(rest).encode(),
                name=node.name,
                code="".join(lines[first : node.end_lineno]),
                parameters=tuple(it.arg for it in given),
            )
    raise CommandFailedError(f"{named.library}: {named.path} defines no {named.name}")


def _target(leaked: Leaked, snapshot: dict[str, bytes]) -> Target:
    patch = make_patch(snapshot, {**snapshot, leaked.path: leaked.ablated})
    deletion = Deletion(
        patch=patch,
        gold_patch="",
        paths=(leaked.path,),
        seams=(),
        num_removed_lines=num_removed_lines(patch),
    )
    return Target(
        leaked=leaked,
        prints=deletion_prints(snapshot, deletion),
        matcher=Matcher(snapshot_prints(snapshot)),
    )
