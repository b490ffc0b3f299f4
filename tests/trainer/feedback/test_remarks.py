import pytest

from trainer.feedback.remarks import does_the_same


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x = 1", "x = 1  # one"),
        ("# a\nx = 1", "# b\n\nx = 1"),
        ("f(a, b)", "f(a,\n  b)"),
        ("x):\n", 'x):\n    """A."""\n'),
        (
            'def f():\n    """A."""\n    return 1\n',
            'def f():\n    """B.\n\n    C.\n    """\n    return 1\n',
        ),
    ],
)
def test_remarks_and_layout_change_nothing(one: str, other: str) -> None:
    assert does_the_same(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x = 1", "x = 2"),
        ("x = 'a'", "x = 'b'"),
        ("if a:\n    b()\n    c()", "if a:\n    b()\nc()"),
        ("x):\n", "x):\n    a()\n"),
        ("x):\n    a()", "x):\n    b()"),
        ("    x = 1", "x = 1"),
        ("f(", "f(x"),
        ('"""', '"""a'),
        ("Return one.", "Return two."),
    ],
)
def test_what_may_do_something_else_or_cannot_be_read_is_not_the_same(one: str, other: str) -> None:
    assert not does_the_same(one, other)
