"""A class file shows what a decompiler would."""

import pytest

from tests.pipeline.leaks.planted import DATA, gaps_of, texts_of, verdict_on

CLASS = (DATA / "Units.class").read_bytes()


def test_methods_are_shown_with_their_types_and_parameters() -> None:
    (text,) = texts_of(CLASS)
    lines = text.decode().splitlines()
    assert "double measureFurlongs(double distance, int roundingPlaces, List labels)" in lines
    assert "long total(long[] parts)" in lines
    assert "String UNIT" in lines


def test_string_constants_are_shown() -> None:
    (text,) = texts_of(CLASS)
    assert b"statute furlong of eight per mile" in text
    assert b"expected at least one label of a ruler" in text


def test_a_jar_gives_its_classes() -> None:
    texts = texts_of((DATA / "units.jar").read_bytes())
    assert any(b"double measureFurlongs(double distance" in text for text in texts)


@pytest.mark.parametrize("size", range(100, len(CLASS) - 60, 61))
def test_a_class_that_is_cut_off_is_told_and_its_names_are_shown(size: int) -> None:
    assert (("class",), "broken") in gaps_of(verdict_on(CLASS[:size]))
    assert any(b"Object" in text for text in texts_of(CLASS[:size]))


def test_another_file_of_the_same_magic_number_is_no_class() -> None:
    fat = b"\xca\xfe\xba\xbe\0\0\0\2" + bytes(80)
    assert texts_of(fat) == [fat]
