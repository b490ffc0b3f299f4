"""Make the table of rarity from common packages.

    python -m pipeline.leaks.build_rarity TABLE PACKAGE...

A package is a wheel or a folder. What several hold is counted, the rest is rare.
"""

import sys
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from pipeline.leaks.normalise import plain_text, without_hash_comments
from pipeline.leaks.rarity import encode_rarity, short_keys
from pipeline.leaks.words import line_keys, read_words, run_keys, word_keys

SUFFIXES = frozenset({".py", ".pyi", ".pyx", ".md", ".rst", ".txt", ".js", ".ts", ".toml", ".cfg"})
# Of one file and of one package: a large one would say too much.
MAX_FILE_BYTES, MAX_PACKAGE_BYTES = 2**20, 2**23
# How many packages hold a word, a line, a run that is kept.
MIN_HOLDERS = (2, 3, 4)

Counted = tuple[NDArray[np.uint32], ...]


def main(arguments: Sequence[str]) -> None:
    """Write a table from packages."""
    table, *packages = map(Path, arguments)
    table.write_bytes(build(packages))


def build(packages: Sequence[Path]) -> bytes:
    """Return the file of a table of some packages."""
    held = [_keys_of(texts_of(it)) for it in packages]
    holders: dict[int, int] = {}
    for kind, least in enumerate(MIN_HOLDERS):
        keys, numbers = np.unique(np.concatenate([it[kind] for it in held]), return_counts=True)
        often = numbers >= least
        holders |= dict(zip(keys[often].tolist(), numbers[often].tolist(), strict=True))
    return encode_rarity(holders, num_packages=len(packages))


def texts_of(package: Path) -> Iterator[bytes]:
    """Yield the texts of a package without comments, up to a limit for each and for all."""
    left = MAX_PACKAGE_BYTES
    for path, content in _files_of(package):
        if left > 0 and PurePosixPath(path).suffix in SUFFIXES:
            left -= len(content)
            yield without_hash_comments(plain_text(content))


def _files_of(package: Path) -> Iterator[tuple[str, bytes]]:
    if package.is_dir():
        for file in sorted(it for it in package.rglob("*") if it.is_file()):
            yield file.as_posix(), file.read_bytes()[:MAX_FILE_BYTES]
        return
    with zipfile.ZipFile(package) as archive:
        for member in archive.infolist():
            if member.file_size <= MAX_FILE_BYTES:
                yield member.filename, archive.read(member)


def _keys_of(texts: Iterable[bytes]) -> Counted:
    words = [read_words(text) for text in texts]
    return (
        _unique(word_keys(it.hashes) for it in words),
        _unique(line_keys(it) for it in words),
        _unique(run_keys(it.hashes) for it in words),
    )


def _unique(keys: Iterable[NDArray[np.uint64]]) -> NDArray[np.uint32]:
    return np.unique(short_keys(np.concatenate([np.empty(0, np.uint64), *keys])))


if __name__ == "__main__":
    main(sys.argv[1:])
