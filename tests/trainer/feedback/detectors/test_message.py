from tests.trainer.feedback.checks import found, is_mended, kinds
from tests.trainer.feedback.episodes import call, episode, says

EDIT = says("", call("write_file", "written: notes.md", path="notes.md", content="x"))
LONG = says("word " * 300)


def test_an_end_without_a_word_is_found() -> None:
    one = episode(EDIT, says("<think>I am done.</think>\n"))
    assert kinds(one) == ["empty_message"]
    assert not is_mended(one, "empty_message", says(" "))
    assert is_mended(one, "empty_message", says("I wrote notes.md."))
    assert kinds(episode(EDIT, says("I am done.</think>"))) == ["empty_message"]


def test_a_message_with_a_call_or_out_of_turns_is_no_empty_end() -> None:
    assert kinds(episode(EDIT)) == []
    assert kinds(episode(EDIT, says(""), ending="overlong")) == []


def test_a_message_that_the_cap_on_tokens_cut_off_is_no_end() -> None:
    for text in ("", LONG.text, "<think>It is"):
        assert kinds(episode(EDIT, says(text, stop="length"))) == []


def test_a_long_end_for_a_small_change_is_found_with_what_it_may_have() -> None:
    one = episode(EDIT, LONG, patch="--- a\n+++ b\n+x\n")
    assert found(one, "overlong_message").facts["num_words"] == 252
    assert is_mended(one, "overlong_message", says("word " * 252))
    assert not is_mended(one, "overlong_message", says("word " * 253))


def test_a_long_end_for_a_large_change_or_an_answer_without_a_change_is_none() -> None:
    assert kinds(episode(EDIT, LONG, patch="+x\n" * 30)) == []
    assert kinds(episode(LONG)) == []
    assert kinds(episode(EDIT, says(f"<think>{LONG.text}</think>Done."))) == []
