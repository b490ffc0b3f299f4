import pytest
from transformers import PreTrainedTokenizerFast

from trainer.bench.targeted.errands import NUM_GONE, NUM_LISTED, POOL, Errand, errand, reply_ids
from trainer.tiny import tiny_tokenizer


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    return tiny_tokenizer()


def named(text: str) -> set[str]:
    return {tool for tool in POOL if tool in text}


def texts(each: Errand, tokenizer: PreTrainedTokenizerFast) -> tuple[str, str, str]:
    plain, hinted, other = (
        str(tokenizer.decode(ids)) for ids in (each.ids, each.hinted_ids, each.other_ids)
    )
    return plain, hinted, other


def test_a_hint_is_all_that_is_put_into_an_errand(tokenizer: PreTrainedTokenizerFast) -> None:
    each = errand(3, tokenizer=tokenizer)
    plain, hinted, other = texts(each, tokenizer)
    for text, tools in ((hinted, each.listed), (other, None)):
        before, _, after = text.partition("\nReminder: the available tools are ")
        hint, _, rest = after.partition(".")
        assert before + rest == plain
        assert tools is None or hint.split(", ") == list(tools)


def test_the_other_hint_names_none_of_the_tools_that_there_are(
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    for number in range(5):
        each = errand(number, tokenizer=tokenizer)
        hint = texts(each, tokenizer)[2].partition("Reminder")[2]
        assert len(named(hint)) == NUM_LISTED
        assert not named(hint) & set(each.listed)


def test_most_examples_call_tools_that_are_gone(tokenizer: PreTrainedTokenizerFast) -> None:
    each = errand(3, tokenizer=tokenizer)
    calls = [
        line.removeprefix("CALL ").removesuffix("<|im_end|>")
        for line in texts(each, tokenizer)[0].splitlines()
        if line.startswith("CALL ")
    ]
    assert [call in each.listed for call in calls] == [True] + [False] * NUM_GONE


def test_an_errand_ends_where_a_reply_begins(tokenizer: PreTrainedTokenizerFast) -> None:
    each = errand(3, tokenizer=tokenizer)
    assert all(text.endswith("<|im_start|>assistant\n") for text in texts(each, tokenizer))
    reply = reply_ids(each.listed[0], tokenizer=tokenizer)
    assert tokenizer.decode(reply) == f"CALL {each.listed[0]}<|im_end|>"


def test_the_same_number_gives_the_same_errand_and_another_another(
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    assert errand(-1, tokenizer=tokenizer) == errand(-1, tokenizer=tokenizer)
    assert errand(-1, tokenizer=tokenizer) != errand(0, tokenizer=tokenizer)
