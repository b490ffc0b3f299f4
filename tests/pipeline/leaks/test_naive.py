"""The plain twin finds copies, so that its speed may be compared."""

import json

import pytest

from pipeline.leaks.match import Form
from pipeline.leaks.naive import NaiveMatcher
from tests.pipeline.leaks.planted import SECRET

MATCHER = NaiveMatcher({"pkg/units.py": SECRET})


@pytest.mark.parametrize("form", ["text", "binary"])
def test_a_copy_is_found_in_text_and_in_binary(form: Form) -> None:
    whole = MATCHER.match(SECRET, form)
    assert len(whole) > 40
    assert MATCHER.match(b"\0\n" + SECRET.replace(b"    ", b"\t") + b"\n\xff", form) == whole


def test_a_code_object_is_found_by_its_names() -> None:
    code = {"names": ["measure_furlongs"], "varnames": ["rounding_places"], "consts": [7, "c"]}
    assert len(MATCHER.match(json.dumps(code).encode(), "code")) == 2


def test_other_code_is_not_found() -> None:
    assert MATCHER.match(b"import os\nprint(os.sep)\n", "text") == frozenset()


def test_equal_snapshots_have_equal_digests() -> None:
    assert NaiveMatcher({"a.py": SECRET}).digest == MATCHER.digest
    assert NaiveMatcher({"a.py": SECRET + b"x_other = 1\n"}).digest != MATCHER.digest
