"""Say by what way something comes to a solver: where it lies, and what it is wrapped in."""

import re
from collections.abc import Sequence

from pipeline.task.certificate import Channel

# The target of the texts that a solver is told.
INSTRUCTION = "/instruction"

# Where something lies, in order: the first pattern that is found tells.
_PATHS: tuple[tuple[Channel, str], ...] = (
    ("instruction", rf"^{INSTRUCTION}(/|$)"),
    ("git", r"(^|/)\.(git|hg|svn|bzr|jj)(/|$)|\.(bundle|pack)$"),
    ("type-checker cache", r"(^|/)\.(mypy_cache|dmypy\.json|pytype|pyre|jedi)(/|$)|pyright"),
    ("test cache", r"(^|/)\.(pytest_cache|hypothesis|ruff_cache|tox|nox)(/|$)"),
    ("coverage", r"(^|/)(htmlcov|\.coverage[^/]*|coverage\.(xml|json|lcov))(/|$)"),
    ("index or backup", r"(^|/)\.?(tags|TAGS|GTAGS|cscope\.out)$|(^|/)\.(idea|vscode)(/|$)"),
    ("index or backup", r"~$|\.(sw[a-p]|orig|rej|bak|old|patch|diff)$|/\.ipynb_checkpoints/"),
    ("bytecode", r"\.py[co]$|(^|/)__pycache__(/|$)"),
    ("package cache", r"(^|/)(\.?cache/(pip|uv)|\.npm|\.cargo|\.m2|\.gradle)(/|$)|^/var/cache/"),
    ("vendored copy", r"(^|/)(_?vendor(ed)?|_vendor_[^/]*|externals?|third_party)(/|$)"),
    ("java", r"\.(class|jar|war|ear|java|kt)$"),
    ("javascript", r"(^|/)(node_modules|\.next|\.turbo|\.parcel-cache)(/|$)"),
    ("javascript", r"\.(map|[cm]?js|tsx?|jsx)$"),
    ("stub", r"\.pyi$|-stubs(/|$)|(^|/)typeshed(/|$)"),
    ("installed copy", r"(^|/)(site|dist)-packages(/|$)|(^|/)lib\d*/python\d[\d.]*(/|$)"),
    ("build output", r"(^|/)(build|dist|\.eggs|target|[^/]*\.(egg|dist)-info)(/|$)"),
    ("build output", r"\.(whl|egg|tar\.(gz|bz2|xz|zst)|tgz|zip|tar|pyz)$"),
    ("built documentation", r"(^|/)(_build|site|doctrees|_static|_sources|javadoc)(/|$)"),
    ("built documentation", r"\.(html?|doctree|inv|pickle)$|(^|/)man\d?(/|$)"),
    ("native", r"\.(so([.\d]+)?|o|a|rlib|rmeta|dll|dylib|pyd|gcda|gcno)$"),
    ("temporary folder", r"^/(var/)?tmp(/|$)|^/dev/shm(/|$)"),
    ("test", r"(^|/)(tests?|testing|cassettes|(__)?snapshots(__)?)(/|$)"),
    ("test", r"(^|/)(test_[^/]*|[^/]*_test|conftest)\.py$"),
    ("documentation", r"(^|/)(docs?|examples?)(/|$)|\.(md|rst|txt|adoc|ipynb)$"),
    ("documentation", r"(^|/)(README|CHANGES|CHANGELOG|NEWS|HISTORY)[^/]*$"),
    ("source", r"\.(py|pyx|pxd|c|cc|cpp|h|hpp|rs|go|rb|toml|cfg|ini)$"),
)
# What was opened tells more than where it lay.
_DECODERS: tuple[tuple[Channel, str], ...] = (
    ("image layer", r"^layer "),
    ("git", r"^git:"),
    ("bytecode", r"^pyc "),
    ("java", r"^class$"),
)


def channel_of(
    path: str, decoders: Sequence[str] = (), *, package_roots: Sequence[str] = ()
) -> Channel:
    """Return the channel of something that was found.

    Args:
        path: as the solver sees it.
        decoders: what had to be opened, outermost first.
        package_roots: where the Repo's own code lies: what is below and has no other channel is
            source.
    """
    for channel, pattern in _DECODERS:
        if any(re.search(pattern, it) for it in decoders):
            return channel
    for channel, pattern in _PATHS:
        if re.search(pattern, path):
            return channel
    is_own = any(path.startswith(f"{root.rstrip('/')}/") for root in package_roots)
    return "source" if is_own else "other"
