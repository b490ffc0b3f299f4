"""Copies in version control: in objects that no reference leads to, and beside them."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from pipeline.bench.leak_seeds.seed import Leaked, Tools, seeds_of, write


def _repository(leaked: Leaked, folder: Path, tools: Tools, *, name: str = "work") -> Path:
    """Make a repository whose first commit has the code and whose second has not."""
    place = folder / name
    write(place, {leaked.path: leaked.module, "README": b"A package.\n"})
    _git(tools, place, "init", "--quiet", "--initial-branch=main")
    _commit(tools, place, "Add")
    write(place, {leaked.path: leaked.ablated})
    _commit(tools, place, "Remove")
    return place


def _git(tools: Tools, place: Path, *arguments: str) -> bytes:
    return tools.run(("git", "-c", "gc.auto=0", *arguments), cwd=place)


def _commit(tools: Tools, place: Path, message: str) -> None:
    _git(tools, place, "add", "--all")
    _git(tools, place, "commit", "--quiet", f"--message={message}")


def _forget(tools: Tools, place: Path, *, prune: Sequence[str] = ()) -> None:
    """Make the second commit the only one, as those do who clean up by recipe."""
    tree = _git(tools, place, "rev-parse", "HEAD^{tree}").decode().strip()
    new = _git(tools, place, "commit-tree", tree, "-m", "Start").decode().strip()
    _git(tools, place, "reset", "--quiet", "--hard", new)
    for arguments in prune:
        _git(tools, place, *arguments.split())


def _loose(leaked: Leaked, root: Path, tools: Tools) -> None:
    _forget(tools, _repository(leaked, root, tools))


def _packed(leaked: Leaked, root: Path, tools: Tools) -> None:
    _git(tools, _repository(leaked, root, tools), "gc", "--quiet")


def _unreachable(leaked: Leaked, root: Path, tools: Tools) -> None:
    place = _repository(leaked, root, tools)
    _forget(tools, place, prune=("gc --quiet",))


def _stash(leaked: Leaked, root: Path, tools: Tools) -> None:
    place = _repository(leaked, root, tools)
    write(place, {leaked.path: leaked.module})
    _git(tools, place, "stash", "--quiet")
    _forget(tools, place, prune=("reflog expire --expire=now refs/heads/main", "gc --quiet"))


def _kept(leaked: Leaked, root: Path, tools: Tools) -> None:
    place = _repository(leaked, root, tools)
    _git(tools, place, "repack", "-a", "-d", "--quiet")
    for pack in (place / ".git/objects/pack").glob("*.pack"):
        pack.with_suffix(".keep").write_bytes(b"")
    _forget(tools, place, prune=("reflog expire --expire=now --all", "gc --quiet --prune=now"))


def _promised(leaked: Leaked, root: Path, tools: Tools) -> None:
    origin = _repository(leaked, tools.scratch, tools, name="origin")
    _git(tools, origin, "config", "uploadpack.allowFilter", "true")
    place = root / "work"
    root.mkdir(parents=True, exist_ok=True)
    url = origin.absolute().as_uri()
    _git(tools, root, "clone", "--quiet", "--filter=blob:limit=10m", url, str(place))
    _git(tools, place, "remote", "remove", "origin")
    _forget(tools, place, prune=("reflog expire --expire=now --all", "gc --quiet --prune=now"))
    shutil.rmtree(origin)


def _bundle(leaked: Leaked, root: Path, tools: Tools) -> None:
    place = _repository(leaked, tools.scratch, tools, name="origin")
    (root / "srv").mkdir(parents=True, exist_ok=True)
    _git(tools, place, "bundle", "create", "--quiet", str(root / "srv/backup.bundle"), "--all")
    shutil.rmtree(place)


def _alternate(leaked: Leaked, root: Path, tools: Tools) -> None:
    place = _repository(leaked, root, tools, name="srv/mirror")
    _git(tools, place, "gc", "--quiet")
    write(root / "work", {leaked.path: leaked.ablated})
    _git(tools, root / "work", "init", "--quiet")
    alternates = b"/srv/mirror/.git/objects\n"
    write(root / "work/.git/objects/info", {"alternates": alternates})
    shutil.rmtree(place / leaked.package, ignore_errors=True)


def _other_index(leaked: Leaked, root: Path, tools: Tools) -> None:
    place = _repository(leaked, root, tools)
    # Staged once, never committed: a blob that only another index names.
    write(place, {"draft.py": leaked.code.encode() + b"\n# draft\n"})
    _git(tools, place, "add", "draft.py")
    _git(tools, place, "rm", "--quiet", "--cached", "draft.py")
    (place / "draft.py").unlink()
    _forget(tools, place, prune=("reflog expire --expire=now --all",))


SEEDS = (
    *seeds_of("git objects", "body", {
        "loose": _loose, "packed": _packed, "unreachable after gc": _unreachable,
    }),
    *seeds_of("git packs that stay", "body", {
        "stash": _stash, "marked to keep": _kept, "of a partial clone": _promised,
    }),
    *seeds_of("git elsewhere", "body", {
        "bundle": _bundle, "alternate": _alternate, "staged once": _other_index,
    }),
)  # fmt: skip
