from trainer.feedback.linter import NO_SYNTAX, Violation, violations


def test_ruff_says_which_rule_which_line_breaks() -> None:
    (found,) = violations("x = 1\nimport os\n", name="a.py") or ()
    assert (found.rule, found.line) == ("F401", 2)
    assert isinstance(found, Violation)


def test_a_text_that_is_no_python_breaks_the_syntax() -> None:
    found = violations("def f(:\n", name="a.py")
    assert found
    assert found[0].rule == NO_SYNTAX


def test_no_syntax_of_python_is_too_new() -> None:
    assert violations('type X = int\nx = f"{"a"}"\n', name="a.py") == ()


def test_taste_breaks_no_rule() -> None:
    assert violations("x=1;y = 2\nl = 'a' * 200\n", name="a.py") == ()


def test_where_ruff_cannot_be_asked_nothing_is_said() -> None:
    assert violations("import os\n", name="a\0.py") is None
