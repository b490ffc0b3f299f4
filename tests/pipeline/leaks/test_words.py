from hypothesis import given
from hypothesis import strategies as st

from pipeline.leaks.words import (
    find_words,
    glued_word_keys,
    line_keys,
    read_words,
    run_keys,
    word_keys,
)
from tests.pipeline.leaks.plain_words import plain_line_keys, plain_run_keys, plain_word_keys

TEXTS = st.lists(
    st.one_of(
        st.sampled_from([b"\n", b" ", b"\n\n", b"\r\n", b"(", b", ", b"12: ", b"_", b"\0"]),
        st.text("abz_09", max_size=20).map(str.encode),
        st.binary(max_size=12),
    ),
    max_size=80,
).map(b"".join)


@given(text=TEXTS)
def test_arrays_and_the_plain_twin_find_the_same_words_lines_and_runs(text: bytes) -> None:
    words = read_words(text)
    assert word_keys(words.hashes).tolist() == plain_word_keys(text)
    assert line_keys(words).tolist() == plain_line_keys(text)
    assert run_keys(words.hashes).tolist() == plain_run_keys(text)


def test_a_line_keeps_its_key_however_it_is_listed_quoted_and_indented() -> None:
    plain = b"grams = amount * _factor('source')"
    listed = b'    12\t        grams=amount*_factor( "source" ),'
    marked = b"+grams = amount * _factor(source)"
    keys = {line_keys(read_words(text)).tolist()[0] for text in (plain, listed, marked)}
    assert len(keys) == 1


def test_lines_that_say_nothing_have_no_key() -> None:
    assert len(line_keys(read_words(b"else:\nreturn x\n})\ntry:\n"))) == 0


def test_a_run_of_eight_words_goes_over_the_ends_of_lines() -> None:
    one = run_keys(read_words(b"a b c d\ne f g h").hashes)
    other = run_keys(read_words(b"a(b, c) =\nd + e[f].g\n    h").hashes)
    assert one.tolist() == other.tolist()
    assert len(one) == 1


def test_a_word_is_known_behind_the_byte_of_its_length() -> None:
    alone = word_keys(read_words(b"really_long_parameter_name_here").hashes).tolist()
    glued = b"\x04Rreally_long_parameter_name_here\x04"
    assert alone[0] in glued_word_keys(glued, find_words(glued)).tolist()
