import zipfile
from pathlib import Path

import numpy as np
import pytest

from pipeline.leaks.build_rarity import build
from pipeline.leaks.rarity import TABLE, decode_rarity, shipped_rarity
from pipeline.leaks.words import line_keys, read_words, word_keys

COMMON = "def helper(value):\n    return value.strip().lower_case()\n"


def bits_of(table: bytes, text: bytes) -> tuple[list[float], list[float]]:
    words, rarity = read_words(text), decode_rarity(table)
    return (
        rarity.bits(word_keys(words.hashes)).tolist(),
        rarity.bits(line_keys(words)).tolist(),
    )


def test_what_all_packages_hold_tells_nothing_and_what_none_does_the_most(tmp_path: Path) -> None:
    for number in range(4):
        folder = tmp_path / f"package{number}"
        folder.mkdir()
        (folder / "code.py").write_text(COMMON)
        (folder / "image.bin").write_bytes(b"seldom_seen " * 9)
    table = build(sorted(tmp_path.iterdir()))
    assert bits_of(table, b"return value.strip().lower_case()")[1] == [0.0]
    assert bits_of(table, b"value seldom_seen")[0] == [0.0, 2.0]


def test_a_wheel_and_a_folder_of_the_same_files_count_alike(tmp_path: Path) -> None:
    folder, wheel = tmp_path / "package", tmp_path / "package.whl"
    folder.mkdir()
    (folder / "code.py").write_text(COMMON)
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("code.py", COMMON)
    assert build([folder] * 4) == build([wheel] * 4)


def test_the_shipped_table_is_small_and_knows_python_from_what_is_rare() -> None:
    assert TABLE.stat().st_size < 1_000_000
    rarity = shipped_rarity()
    assert rarity.num_packages >= 200
    words = read_words(b"self return zorbulate_quux")
    common, also, rare = rarity.bits(word_keys(words.hashes)).tolist()
    assert max(common, also) < 0.5
    assert rare == pytest.approx(np.log2(rarity.num_packages))


def test_a_file_of_another_format_is_refused() -> None:
    with pytest.raises(ValueError, match="expected 'regrow-rarity-1'"):
        decode_rarity(b'{"format": "other"}\n')
