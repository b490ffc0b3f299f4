"""What a grade rests on is kept to the byte, and a second grade is held against it."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.task.receipt import (
    RECEIPT_VERSION,
    Decided,
    Receipt,
    TestResult,
    TwinResult,
    difference,
    digest_of,
    read_receipt,
    write_receipt,
)
from tests.trainer.test_tasks import blank

TEXT = st.text(st.characters(codec="utf-8") | st.sampled_from("\udc80\udcff\n\0"), max_size=20)


def receipt(patch: str = "", **fields: Any) -> Receipt:
    made = replace(
        blank(Receipt),
        version=RECEIPT_VERSION,
        patch=patch,
        patch_sha256=digest_of(patch),
        verdict="solved",
        tests=(TestResult(id="a", outcome="passed"), TestResult(id="b", outcome="passed")),
        decisions=(Decided(path="x.py", decision="kept", reason=""),),
        twins=(TwinResult(test="a", number=0, outcomes=("failed", "error")),),
        alarms=("frames a.py",),
    )
    return replace(made, **fields)


@given(patch=TEXT, detail=TEXT)
def test_a_receipt_comes_back_as_it_was_whatever_its_patch_holds(patch: str, detail: str):
    made = receipt(patch, detail=detail)
    text = write_receipt(made)
    assert text.isascii()
    assert text.count("\n") == 1
    assert read_receipt(text) == made
    assert write_receipt(read_receipt(text)) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no receipt of a grade: JSONDecodeError"),
        ("[]", "no receipt of a grade: TypeError"),
        ("{}", "no receipt of a grade: KeyError: 'version'"),
        ('{"version": 1}', "no receipt of a grade: KeyError"),
        ('{"version": 9}', "a receipt of version 9, expected 1"),
        ("[" * 100_000, "no receipt of a grade: RecursionError"),
        (
            write_receipt(receipt("a")).replace('"task":"', '"task":5,"_":"'),
            "no receipt of a grade: TypeError: 5: expected str",
        ),
        (
            write_receipt(receipt("a")).replace('"patch":"a"', '"patch":"b"'),
            "the patch of the receipt is not the one that was graded",
        ),
    ],
    ids=range(8),
)
def test_what_is_no_receipt_is_refused_in_one_line(text: str, message: str):
    with pytest.raises(ValueError, match=message) as caught:
        read_receipt(text)
    assert "\n" not in str(caught.value)


def results(*outcomes: Any) -> tuple[TestResult, ...]:
    return tuple(
        TestResult(id=key, outcome=outcome) for key, outcome in zip("abc", outcomes, strict=False)
    )


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"verdict": "tampered"}, "verdict was solved, is tampered"),
        ({"task": "other"}, "task was , is other"),
        ({"tests": results("passed", "failed")}, "b was passed, b is failed"),
        ({"tests": results("passed")}, "2 tests were graded, 1 are"),
        ({"decisions": ()}, "x.py was decided otherwise"),
        ({"twins": ()}, ""),
        ({"alarms": ()}, ""),
    ],
)
def test_a_second_grade_that_differs_is_told_where(fields: dict[str, Any], found: str):
    assert difference(receipt(), receipt(**fields)) == found
