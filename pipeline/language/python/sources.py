"""Read the Python and the pages of a tree, and tell its package files from the rest."""

from collections.abc import Iterable, Mapping
from contextlib import suppress

from pipeline.task.patch import is_protected

# Folders at the top of a tree whose Python is neither package nor test.
ASIDE = frozenset({
    "bench",
    "benchmark",
    "benchmarks",
    "doc",
    "docs",
    "example",
    "examples",
    "typing-examples",
})


def decode_sources(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the `.py` and `.pyi` files as text; what is not UTF-8 is left out.

    Documentation and examples are left out as well: no test runs them, and what they call may go.
    """
    sources = {}
    for path, content in files.items():
        if not path.endswith((".py", ".pyi")) or path.split("/")[0] in ASIDE:
            continue
        try:
            sources[path] = content.decode()
        except UnicodeDecodeError:
            continue
    return sources


def decode_documents(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the pages of documentation as text; what is not UTF-8 is left out."""
    pages = {}
    for path, content in files.items():
        if path.endswith((".rst", ".md")) and not is_protected(path):
            with suppress(UnicodeDecodeError):
                pages[path] = content.decode()
    return pages


def package_files(sources: Mapping[str, str], *, traced: Iterable[str]) -> frozenset[str]:
    """Return the files of the packages under test: those beside the files that tests reach.

    A package is the top folder (below `src`) of a traced file that is no test, or a traced module
    that stands alone.
    """
    tops = {_top(path) for path in traced if not is_protected(path)}
    return frozenset(path for path in sources if not is_protected(path) and _top(path) in tops)


def _top(path: str) -> str:
    parts = path.split("/")
    depth = 2 if parts[0] in {"src", "lib"} else 1
    return "/".join(parts[:depth])
