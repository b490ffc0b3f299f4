"""Read what a source tree says of its distribution, without running any of it."""

import re
from dataclasses import dataclass
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path

from packaging.utils import canonicalize_name

from pipeline.static_metadata import Extras, Static, read_static, strings

EXTRA = re.compile(r"""\bextra\s*==\s*["']([^"']+)["']""")
# What a distribution may be called; anything else could be taken for an option or a path.
NAME = re.compile(r"[A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9._-]{0,98}[A-Za-z0-9]")
UNKNOWN_VERSION = "0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """What a Snapshot's distribution is called and what it needs.

    Example: `Project(name="flask", version="3.1.3", requires=("werkzeug>=3.1",), …)`.
    """

    # As the project spells it.
    name: str
    # `0` when only a build could tell.
    version: str
    # Requirement strings that hold without extras; other markers are kept.
    requires: tuple[str, ...]
    # (canonical name of the extra, its requirement strings), sorted; markers are kept.
    extras: Extras
    # Core metadata, headers only: the description would carry the README into the sandbox.
    metadata: str
    # Content of `entry_points.txt`; empty when there are none.
    entry_points: str


def read_project(tree: Path, *, name: str) -> Project:
    """Describe a tree's distribution from PKG-INFO, egg-info and build files, in this order.

    Args:
        tree: unpacked and not yet cleaned, since cleaning removes the first two.
        name: what the distribution is called when the tree does not say.
    """
    static = read_static(tree)
    headers = _headers(tree)
    requires, extras = _requirements(tree, headers, static)
    stated = (headers.get("Name"), static.name)
    project_name = next((it for it in stated if it and NAME.fullmatch(it)), name)
    version = headers.get("Version") or static.version or UNKNOWN_VERSION
    return Project(
        name=project_name,
        version=version,
        requires=requires,
        extras=extras,
        metadata=_render(headers) or _minimal(project_name, version, requires),
        entry_points=_egg_info(tree, "entry_points.txt") or static.entry_points,
    )


def _headers(tree: Path) -> Message:
    path = tree / "PKG-INFO"
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    return HeaderParser().parsestr(text or _egg_info(tree, "PKG-INFO"))


def _egg_info(tree: Path, file: str) -> str:
    """Return a file of the egg-info folder, at the top or one folder down; empty without one."""
    found = [*sorted(tree.glob(f"*.egg-info/{file}")), *sorted(tree.glob(f"*/*.egg-info/{file}"))]
    return found[0].read_text(encoding="utf-8", errors="replace") if found else ""


def _render(headers: Message) -> str:
    lines = [f"{key}: {value}" for key, value in headers.items() if key != "Description"]
    return "".join(f"{line}\n" for line in lines)


def _minimal(name: str, version: str, requires: tuple[str, ...]) -> str:
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    return "".join(f"{line}\n" for line in [*lines, *(f"Requires-Dist: {r}" for r in requires)])


def _requirements(tree: Path, headers: Message, static: Static) -> tuple[tuple[str, ...], Extras]:
    """Return base requirements and extras, from the first source that has either."""
    stated = headers.get_all("Requires-Dist") or _requires_txt(_egg_info(tree, "requires.txt"))
    if not stated:
        return static.requires, _canonical(static.extras)
    base = tuple(requirement for requirement in stated if not EXTRA.search(requirement))
    named = sorted({name for requirement in stated for name in EXTRA.findall(requirement)})
    extras = tuple(
        (name, tuple(line for line in stated if name in EXTRA.findall(line))) for name in named
    )
    return base, _canonical(extras)


def _canonical(extras: Extras) -> Extras:
    return tuple(sorted((canonicalize_name(name), lines) for name, lines in extras))


def _requires_txt(text: str) -> list[str]:
    """Turn the sections of a `requires.txt` (`[extra:marker]`) into markers."""
    found, marker = [], ""
    for line in strings(text):
        if line.startswith("["):
            extra, _, condition = line.strip("[]").partition(":")
            clauses = [f"({condition})"] * bool(condition) + [f'extra == "{extra}"'] * bool(extra)
            marker = f"; {' and '.join(clauses)}"
        else:
            found.append(line + marker)
    return found
