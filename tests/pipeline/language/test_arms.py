"""What can go from a function without the rest of it."""

import ast

import pytest

from pipeline.language.python.arms import arms_in, innermost

SOURCE = """\
def choose(kind):
    check(kind)
    if kind == 1:
        note(); count()
    elif kind == 2:
        return two()
    else:
        return more()
    if kind == 3: return three()
    if kind == 4:
        def inner():
            four()
    match kind:
        case 5:
            return five()
        case _:
            return any()
    try:
        return six()
    except KeyError:
        return seven()
    except ValueError:
        return eight()
    value = nine()
    return value

ten()
"""


def test_calls_and_branches_that_leave_something_are_arms():
    arms = arms_in(ast.parse(SOURCE), SOURCE)
    spans = [(it.span.first_line, it.span.last_line) for it in arms]
    assert spans == [(2, 2), (5, 6), (9, 9), (10, 12), (14, 15), (20, 21), (12, 12)]
    assert [it.body.first_line for it in arms] == [2, 6, 9, 11, 15, 21, 12]


@pytest.mark.parametrize(
    ("line", "span"), [(6, (5, 6)), (12, (12, 12)), (11, (10, 12)), (24, None)]
)
def test_a_line_is_in_the_smallest_arm_around_it(line: int, span: tuple[int, int] | None):
    arm = innermost(arms_in(ast.parse(SOURCE), SOURCE), line)
    assert (arm and (arm.span.first_line, arm.span.last_line)) == span


def test_of_branches_without_an_else_each_is_an_arm():
    source = "def f(a):\n    if a:\n        g()\n    elif b:\n        h = 1\n"
    arms = arms_in(ast.parse(source), source)
    assert [(it.span.first_line, it.span.last_line) for it in arms] == [(2, 3), (3, 3), (4, 5)]
