"""Take the fingerprints of a Snapshot, and of what a Deletion removes from it."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import PurePosixPath

from pipeline.leaks.normalise import plain_text, without_brace_comments, without_hash_comments
from pipeline.leaks.python_prints import python_prints
from pipeline.leaks.symbol import KINDS, SymbolPrints, keys_of, with_keys
from pipeline.leaks.weigh import weigh_text, weigh_words
from pipeline.task.patch import apply_patch, is_protected
from pipeline.task.record import Deletion

__all__ = ["SymbolPrints", "deletion_prints", "snapshot_prints", "symbols_prints"]

# A larger text is data rather than something that was written.
MAX_BYTES = 2**20
PROSE = frozenset({".md", ".rst", ".txt", ".adoc", ".html", ""})
BRACES = frozenset({".c", ".h", ".cc", ".cpp", ".cs", ".go", ".java", ".js", ".kt", ".rs", ".ts"})


def snapshot_prints(snapshot: Mapping[str, bytes]) -> tuple[SymbolPrints, ...]:
    """Return the fingerprints of all that a Deletion could remove from a tree: no tests."""
    return tuple(
        prints
        for path, content in sorted(snapshot.items())
        if not is_protected(path)
        for prints in symbols_prints(path, content)
    )


@lru_cache(maxsize=2**12)
def symbols_prints(path: str, content: bytes) -> tuple[SymbolPrints, ...]:
    """Return the fingerprints of each symbol of a Python module; of another file, of its text."""
    suffix = PurePosixPath(path).suffix
    if len(content) > MAX_BYTES or b"\0" in content:
        return ()
    prints = python_prints(path, content) if suffix in {".py", ".pyi"} else None
    return (_text_prints(path, content, suffix=suffix),) if prints is None else prints


def _text_prints(path: str, content: bytes, *, suffix: str) -> SymbolPrints:
    text = plain_text(content)
    if suffix in PROSE:
        weighed = weigh_text(text)
        return SymbolPrints(symbol=f"{path}:", phrases=weighed.lines | weighed.runs)
    without: Callable[[bytes], bytes] = (
        without_brace_comments if suffix in BRACES else without_hash_comments
    )
    plain = without(text)
    weighed = weigh_text(plain)
    words = weigh_words(plain) if suffix in BRACES else {}
    return SymbolPrints(symbol=f"{path}:", lines=weighed.lines, grams=weighed.runs, words=words)


def deletion_prints(snapshot: Mapping[str, bytes], deletion: Deletion) -> tuple[SymbolPrints, ...]:
    """Return the fingerprints of what a Deletion removes: what is in a file before, not after.

    Tests and their configuration stay with the solver, so nothing of theirs is here. Of a function
    that loses a part, only what that part alone holds counts.

    Raises:
        PatchError: the patch does not fit the Snapshot.
    """
    changes = apply_patch(snapshot, deletion.patch)
    found = (
        _gone(path, snapshot[path], changes[path] or b"")
        for path in sorted(changes)
        if path in snapshot and not is_protected(path)
    )
    return tuple(it for prints in found for it in prints)


def _gone(path: str, before: bytes, after: bytes) -> tuple[SymbolPrints, ...]:
    kept = {it.symbol: it for it in symbols_prints(path, after)}
    gone = (_less(it, kept.get(it.symbol)) for it in symbols_prints(path, before))
    return tuple(it for it in gone if any(keys_of(it, kind) for kind in KINDS))


def _less(prints: SymbolPrints, kept: SymbolPrints | None) -> SymbolPrints:
    if kept is None:
        return prints

    def gone(kind: str) -> Mapping[int, float]:
        stays = keys_of(kept, kind)
        return {key: bits for key, bits in keys_of(prints, kind).items() if key not in stays}

    return with_keys(prints, gone)
