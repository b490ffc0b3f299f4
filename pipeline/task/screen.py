"""Sort the changes of a solver's patch: what is applied, what is set aside, what is a trick."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Literal

from pipeline.task.ground import Ground, spelled
from pipeline.task.patch import TEST_FOLDERS, is_protected

MAX_FILE_BYTES = 2**20
MAX_FILES = 500

# What a repository may be given besides the kinds of files that it holds already.
TEXT_SUFFIXES = frozenset({
    *(".py", ".pyi", ".typed", ".md", ".rst", ".txt", ".json", ".toml", ".yaml", ".yml", ".csv"),
    *(".ini", ".cfg", ".html", ".css", ".js", ".xml", ".tmpl", ".j2", ".po", ".ipynb"),
})
# Folders at the top that builds and tools leave behind, besides those that start with a dot.
OUTPUT = frozenset({"build", "dist", "htmlcov", "venv", "env", "node_modules", "_build"})
# What an interpreter loads or runs besides source.
COMPILED = ("*.py[cod]", "*.so", "*.so.*", "*.dll", "*.dylib", "*.pyz", "*.egg", "*.whl")
# What runs or is believed at the start of an interpreter.
STARTS = ("*.pth", "sitecustomize.py", "usercustomize.py", "pyvenv.cfg")
METADATA = ("*.dist-info", "*.egg-info", "*.egg-link")
# Files that configure the runner and nothing else.
RUNNER_FILES = ("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml")
# A section of other files that configures the runner.
RUNNER_SECTION = re.compile(rb"^\s*\[\s*(tool:pytest|pytest|tool\.pytest)\b", re.MULTILINE)
PACKAGING = (
    *("pyproject.toml", "setup.cfg", "setup.py", "tox.ini", "noxfile.py", "MANIFEST.in"),
    *("requirements*.txt", "constraints*.txt", "*.lock", "Makefile", "Dockerfile", "codecov.yml"),
    *(".coveragerc", ".gitlab-ci.yml", ".travis.yml", ".pre-commit-config.yaml", ".readthedocs*"),
    *(".gitignore", ".gitattributes", ".editorconfig"),
)
# Modules of the standard library whose names people give to files that they try things in.
SCRATCH = frozenset({"code", "profile", "trace", "timeit", "this", "cmd"})

Decision = Literal["kept", "dropped", "refused"]
Found = tuple[Decision, str]
Reasons = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Screened:
    """A patch, sorted.

    Example: `Screened(kept={"src/a.py": b"x"}, dropped=(("tests/b.py", "…"),), refused=())`.
    """

    # New content by path, None for a removed file.
    kept: dict[str, bytes | None]
    # (path, why it is left alone): what an honest solver may well have touched.
    dropped: Reasons
    # (path, why no honest solver needs it).
    refused: Reasons


def screen(
    changes: Mapping[str, bytes | None], oddities: Mapping[str, str], *, ground: Ground
) -> Screened:
    """Sort the changes of a patch: what an honest solver needs is kept, and never refused.

    Args:
        changes: new content by path, None for a removed file.
        oddities: why a tree of text files cannot hold it, by path.
        ground: what the patch is for.
    """
    kept: dict[str, bytes | None] = {}
    aside: dict[Decision, list[tuple[str, str]]] = {"kept": [], "dropped": [], "refused": []}
    for path, content in changes.items():
        decision, reason = _decide(path, content, ground)
        aside[decision].append((path, reason))
        if decision == "kept":
            kept[path] = content
    for path, oddity in oddities.items():
        decision, reason = _decide_oddity(path, oddity)
        aside[decision].append((path, reason))
    if len(kept) > MAX_FILES:
        reason = f"changes {len(kept)} files, expected at most {MAX_FILES}"
        aside["refused"].append((min(kept), reason))
    return Screened(
        kept=kept, dropped=tuple(sorted(aside["dropped"])), refused=tuple(sorted(aside["refused"]))
    )


def _decide(path: str, content: bytes | None, ground: Ground) -> Found:
    """Return the answer of the first rule that has one."""
    for rule in RULES:
        if found := rule(path, content, ground):
            return found
    return "kept", ""


def _is_test(path: str, _content: bytes | None, _ground: Ground) -> Found | None:
    if below := _test_folder(path):
        return "dropped", f"is below {below}, a folder of tests"
    reason = is_protected(path.rpartition("/")[2])
    return ("dropped", reason) if reason.startswith("is a test") else None


def _is_output(path: str, _content: bytes | None, ground: Ground) -> Found | None:
    top, slash, _ = path.partition("/")
    is_built = top in OUTPUT and not any(it.startswith(f"{top}/") for it in ground.sizes)
    if slash and (is_built or top.startswith(".")):
        return "dropped", f"is below {top}, which no source is"
    return None


def _is_given(path: str, _content: bytes | None, ground: Ground) -> Found | None:
    """Answer for documents and data that were there: suites compare with them, or test them."""
    is_given = path in ground.sizes and path not in ground.deleted
    folders = map(str, PurePosixPath(path).parents)
    if is_given and not path.endswith((".py", ".pyi")) and ground.packages.isdisjoint(folders):
        return "dropped", "is no part of a package, and the Deletion left it alone"
    return None


def _is_removal(path: str, content: bytes | None, ground: Ground) -> Found | None:
    if content is not None:
        return None
    if path in ground.test_packages:
        return "dropped", "makes a package of test modules"
    reason = _is_set_aside(path, content, ground) or _is_given(path, content, ground)
    return reason or ("kept", "")


def _is_start(path: str, _content: bytes | None, ground: Ground) -> Found | None:
    if path in ground.sizes:
        return None
    if _named(path, STARTS):
        return "refused", "runs at the start of the interpreter"
    if _named(path, METADATA):
        decision: Decision = "dropped" if _is_own(path, ground) else "refused"
        return decision, "is the metadata of an installed package"
    if _named(path, COMPILED):
        return "refused", "is compiled, which can stand in for any source"
    return None


def _is_configuration(path: str, content: bytes | None, ground: Ground) -> Found | None:
    name = path.rpartition("/")[2]
    configures = _named(name, PACKAGING) and RUNNER_SECTION.search(content or b"")
    if path not in ground.sizes and (name in RUNNER_FILES or configures):
        return "refused", "is a new configuration of the runner"
    return None


def _is_shadow(path: str, _content: bytes | None, ground: Ground) -> Found | None:
    """Answer for a new module on `sys.path` whose name another one has."""
    for folder in ground.path_folders if path not in ground.sizes else ():
        start = f"{folder}/" if folder else ""
        name = path.removeprefix(start).removesuffix(".py").removesuffix("/__init__")
        if not path.startswith(start) or not path.endswith(".py") or name not in ground.taken:
            continue
        if not {f"{start}{name}.py", f"{start}{name}/__init__.py"} & ground.sizes.keys():
            decision: Decision = "dropped" if name in SCRATCH else "refused"
            return decision, f"would stand in for the module {name!r}"
    return None


def _is_set_aside(path: str, _content: bytes | None, _ground: Ground) -> Found | None:
    if reason := is_protected(path):
        return "dropped", reason
    is_packaging = _named(path.rpartition("/")[2], PACKAGING)
    return ("dropped", "is packaging") if is_packaging else None


def _is_odd(path: str, content: bytes | None, ground: Ground) -> Found | None:
    content = content or b""
    limit = max(MAX_FILE_BYTES, 2 * ground.sizes.get(path, 0))
    if b"\0" in content:
        return _binary(path, "holds a NUL byte")
    if len(content) > limit:
        return _binary(path, f"holds {len(content)} bytes, expected at most {limit}")
    return None


def _is_stray(path: str, _content: bytes | None, ground: Ground) -> Found | None:
    suffix = PurePosixPath(path).suffix
    known = TEXT_SUFFIXES | {PurePosixPath(it).suffix for it in ground.sizes}
    if path in ground.sizes or suffix in known:
        return None
    return "dropped", f"is of a kind ({suffix or 'no suffix'}) that the repository does not hold"


# In this order; what no rule has an answer for is kept.
RULES: tuple[Callable[[str, bytes | None, Ground], Found | None], ...] = (
    _is_test,
    _is_output,
    _is_removal,
    _is_start,
    _is_configuration,
    _is_shadow,
    _is_set_aside,
    _is_given,
    _is_odd,
    _is_stray,
)


def _decide_oddity(path: str, oddity: str) -> Found:
    if (below := _test_folder(path)) and ".." not in path.split("/"):
        return "dropped", f"is below {below}, a folder of tests"
    return _binary(path, oddity) if oddity.startswith("is binary") else ("refused", oddity)


def _binary(path: str, reason: str) -> Found:
    """Refuse what an interpreter might load; a picture or a log that lies about is no trick."""
    loads = _named(path, (*COMPILED, *STARTS, *METADATA, "*.py", "*.pyi"))
    return ("refused" if loads else "dropped"), reason


def _test_folder(path: str) -> str:
    folders = path.split("/")[:-1]
    return next((it for it in folders if it.lower() in TEST_FOLDERS), "")


def _named(path: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(part, it) for part in path.split("/") for it in patterns)


def _is_own(path: str, ground: Ground) -> bool:
    """Tell the metadata that an installation of the project itself leaves in its tree."""
    names = [part for part in path.split("/") if _named(part, METADATA)]
    return all(spelled(re.split(r"-|\.egg|\.dist", it)[0]) == ground.project for it in names)
