"""Know what a rule must know of a Task, and what the agent itself has made on the way."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from email.parser import HeaderParser
from fnmatch import fnmatchcase

from pipeline.monitor.acts import Act, plain_path
from pipeline.task.ground import spelled
from pipeline.task.record import Task

ROOTS = ("src/", "lib/", "python/")
# What programs leave behind, by the words that tell them apart from others.
PRODUCTS = (
    (r"git init", (".git",)),
    (r"git\b.* stash( push| save| -\S+)*$|git stash$", ("stash",)),
    (r"(python|uv|flit|hatch|poetry)\b.*\bbuild\b", ("build", "dist", "egg-info", ".whl")),
    (r"pip3?\b.*\bwheel\b", (".whl",)),
    (r"\bsetup\.py\b.*\b([bs]dist\w*|build\w*|develop|install)\b", ("build", "dist", "egg-info")),
    (r"\b(compileall|py_compile)\b", (".pyc", "__pycache__")),
    (r"\bd?mypy\b", (".mypy_cache", ".dmypy")),
    (r"\bpytest\b|run_tests", (".pytest_cache", ".hypothesis")),
    (r"\bcoverage\b|--cov\b", (".coverage", "htmlcov")),
    (r"\bruff\b", (".ruff_cache",)),
    (r"\bsphinx-build\b|\bmake html\b", ("_build", "doctrees", ".html")),
    (r"\bjavac\b", (".class",)),
    (r"\b(make|cmake|cargo|go)\b", (".o", ".so", ".a", "target")),
    (r"\bctags\b", ("tags",)),
)
# Options after which a program names what it makes.
OUTPUT_OPTIONS = frozenset({"-o", "--output", "--out", "--wheel-dir"})
PACKERS = re.compile(
    r"^(zip|7za? a|(bsd)?tar -?\w*c\w*|jar -?\w*c\w*|python -m (zipfile|tarfile) -c"
    r"|(gzip|bzip2|xz|zstd)(?!.* -(-decompress|\w*d)\b))(\s|$)"
)
WRITE_MODES = frozenset({"w", "wb", "x", "xb", "w:gz", "w:bz2", "w:xz", "a"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What the rules know.

    Example: `scene_of(task, solve_files).targets` is `{"toolz"}`.
    """

    # Names under which the project is imported or distributed.
    targets: frozenset[str]
    # Last parts of the deleted symbols' names, and of the modules that they stood in.
    symbols: frozenset[str]
    # Paths of the solve tree.
    paths: frozenset[str]
    # Folders of the solve tree.
    folders: frozenset[str]


def scene_of(task: Task, solve_files: Mapping[str, bytes]) -> Scene:
    """Return what the rules must know of a Task."""
    headers = HeaderParser().parsestr(task.environment.metadata)
    tops = {_top(symbol.path) for symbol in task.feature.symbols}
    project = {spelled(headers["Name"] or task.repo.name)}
    names = {symbol.name for symbol in task.feature.symbols}
    parts = [path.split("/")[:-1] for path in solve_files]
    return Scene(
        targets=frozenset({it for it in tops | project if it}),
        symbols=frozenset(name for name in names if not name.startswith("__")),
        paths=frozenset(solve_files),
        folders=frozenset("/".join(it[:end]) for it in parts for end in range(1, len(it) + 1)),
    )


def _top(path: str) -> str:
    for root in ROOTS:
        path = path.removeprefix(root)
    return path.split("/")[0].removesuffix(".py")


class Own:
    """Owns what the agent has made so far: to look into that is no leak."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._files: set[str] = set()
        self._products: set[str] = set()

    def take(self, act: Act) -> None:
        """Learn what an act makes."""
        line = " ".join((act.program, *act.words[:40]))
        self._files.update(map(plain_path, act.writes))
        for pattern, products in PRODUCTS:
            if re.search(pattern, line) and not _is_old_history(act, pattern):
                self._products.update(products)
        if PACKERS.search(line) or WRITE_MODES & set(act.words):
            self._files.update(plain_path(it) for it in act.words if _is_path(it))
        for option, value in zip(act.words, act.words[1:], strict=False):
            if option in OUTPUT_OPTIONS:
                self._files.add(plain_path(value))

    def has(self, path: str) -> bool:
        """Tell whether a path is the agent's own, or is in the tree that it was given."""
        plain = plain_path(path).rstrip("/")
        if plain in self._scene.paths or plain in self._scene.folders:
            return True
        return (
            any(plain == it or plain.startswith(f"{it}/") for it in self._files)
            or (any(char in plain for char in "*?") and self._matches(plain))
            or any(_is_product(plain, it) for it in self._products)
        )

    def _matches(self, pattern: str) -> bool:
        """Tell whether a pattern stands for files that are there rightly, and may have others."""
        known = (*self._files, *self._scene.paths)
        return not pattern.startswith("/") and any(fnmatchcase(it, pattern) for it in known)


def _is_old_history(act: Act, pattern: str) -> bool:
    return "git" in pattern and "Reinitialized existing" in act.output


def _is_product(path: str, product: str) -> bool:
    """Tell whether a path of the work tree is a product; what lies elsewhere was there before."""
    if path.startswith(("/", "~")) and not path.startswith("/tmp/"):  # noqa: S108  of the sandbox
        return False
    parts = path.split("/")
    return product in parts or parts[-1].endswith(product) or any(
        it.endswith(product) for it in parts if product.startswith("egg")
    )  # fmt: skip


def _is_path(word: str) -> bool:
    return not word.startswith("-") and "\n" not in word and any(it in word for it in "/.*")


def paths_in(words: Iterable[str]) -> list[str]:
    """Return the words that may be paths."""
    return [it for it in words if _is_path(it)]
