"""What is read from pytest's own report, and when it agrees with the recorder."""

from xml.sax.saxutils import quoteattr

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.task.junit import case_of, disagreement, read_junit
from pipeline.task.record import Outcome, TestOutcome


def outcome(test: str, what: Outcome = "passed") -> TestOutcome:
    return TestOutcome(id=test, outcome=what, duration_s=0.0)


def report(*cases: tuple[str, str, str]) -> bytes:
    """Return a report of test cases: class name, name, what is inside."""
    texts = [
        f"<testcase classname={quoteattr(it)} name={quoteattr(name)}>{inside}</testcase>"
        for it, name, inside in cases
    ]
    return f"<testsuites><testsuite>{''.join(texts)}</testsuite></testsuites>".encode()


@pytest.mark.parametrize(
    ("test", "case"),
    [
        ("test_a.py::test", "test_a::test"),
        ("a/b/test_c.py::C::D::test[x::y/z.py]", "a.b.test_c.C.D::test[x::y/z.py]"),
        ("test_a.py::test #2", "test_a::test"),
        ("test_a.py::test[#2]", "test_a::test[#2]"),
        ("README.txt::README.txt", "README.txt::README.txt"),
        ("test_a.py::test[\x00\x7f\ufffe]", "test_a::test[#x00#x7F#xFFFE]"),
    ],
)
def test_a_test_is_named_as_pytest_names_it(test: str, case: str):
    assert case_of(test) == case


def test_the_worst_of_what_is_in_a_test_case_counts():
    found = read_junit(
        report(
            ("a", "b", ""),
            ("a", "c", '<skipped message="m"/>'),
            ("a", "d", "<failure/><skipped/><system-out>x</system-out>"),
            ("a", "e", "<error/><failure/>"),
            ("a", "e", ""),
        )
    )
    assert found == {
        "a::b": ("passed",),
        "a::c": ("skipped",),
        "a::d": ("failed",),
        "a::e": ("error", "passed"),
    }


BAD = {
    "nothing": b"",
    "half": report(("a", "b", ""))[:-9],
    "an entity": b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
    "a file": b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>',
    "no text": b"\xff\xfe\x00",
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
def test_what_is_no_report_is_none(data: bytes):
    assert read_junit(data) is None


@given(st.binary(max_size=300))
def test_whatever_was_written_is_a_report_or_none(data: bytes):
    assert read_junit(data) in (None, {})


ONE = {"a::b": ("passed",)}
AGREE = {
    "passed": ([outcome("a.py::b")], ONE),
    "unexpectedly": ([outcome("a.py::b", "xpassed")], ONE),
    "failed as error": ([outcome("a.py::b", "failed")], {"a::b": ("error",)}),
    "xfailed": ([outcome("a.py::b", "xfailed")], {"a::b": ("skipped",)}),
    "call and tear-down": ([outcome("a.py::b", "error")], {"a::b": ("failed", "error")}),
    "equal ids": (
        [outcome("a.py::b", "failed"), outcome("a.py::b #2")],
        {"a::b": ("passed", "failed")},
    ),
    "what did not collect": ([outcome("a.py::b")], {**ONE, "::a.py": ("error",)}),
    "no test was run": ([], None),
}
DIFFER = {
    "failed": ([outcome("a.py::b")], {"a::b": ("failed",)}),
    "passed": ([outcome("a.py::b", "failed")], ONE),
    "skipped": ([outcome("a.py::b")], {"a::b": ("skipped",)}),
    "missing there": ([outcome("a.py::b")], {}),
    "a failure is missing there": ([outcome("a.py::b", "failed")], {}),
    "missing here": ([], ONE),
    "too often": ([outcome("a.py::b")], {"a::b": ("passed", "passed")}),
    "no report": ([outcome("a.py::b")], None),
}


@pytest.mark.parametrize(("ours", "theirs"), AGREE.values(), ids=AGREE)
def test_reports_agree(ours: list[TestOutcome], theirs: dict[str, tuple[str, ...]] | None):
    assert disagreement(ours, theirs) == ""


@pytest.mark.parametrize(("ours", "theirs"), DIFFER.values(), ids=DIFFER)
def test_reports_differ(ours: list[TestOutcome], theirs: dict[str, tuple[str, ...]] | None):
    assert disagreement(ours, theirs)


def test_a_test_with_a_skipped_subtest_is_skipped_in_the_report():
    ours, half = [outcome("a.py::b")], frozenset({"a.py::b"})
    assert disagreement(ours, {"a::b": ("skipped",)}, half_skipped=half) == ""
    assert disagreement(ours, ONE, half_skipped=half)
