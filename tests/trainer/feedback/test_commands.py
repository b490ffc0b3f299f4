import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.feedback.commands import only_looks


@pytest.mark.parametrize(
    "command",
    [
        "ls -la",
        "cat a.py | head -20",
        "cd src && grep -rn 'a > b; c' . 2>/dev/null | wc -l",
        "find . -name '*.py' -not -path './.git/*' | sort -u",
        "sed -n '1,40p' a.py",
        "git diff HEAD~1 -- a.py; git log --oneline | head",
        "python -m pytest -q tests 2>&1 | tail -5",
        "PYTHONPATH=src pytest -x",
        "/usr/bin/wc -l a.py",
    ],
)
def test_a_command_that_but_prints_looks(command: str) -> None:
    assert only_looks(command)


@pytest.mark.parametrize(
    "command",
    [
        "sed -i s/a/b/ a.py",
        "sed -Ei.bak 's/a/b/' a.py",
        "sed -n 's/a/b/w out.txt' a.py",
        "echo x > a.py",
        "cat a.py >> b.py",
        "ls & rm a.py",
        "ls a#b; rm a.py",
        "find . -name '*.pyc' -delete",
        "find . -exec rm {} +",
        "sort -o a.txt a.txt",
        "git diff --output=a.diff",
        "git checkout a.py",
        "git",
        "python fix.py",
        "python -c 'open(1)'",
        "cat $(rm a.py)",
        "cat `rm a.py`",
        "cat <<EOF | sh\nrm a.py\nEOF",
        "(rm a.py)",
        "xargs rm < list.txt",
        "ruff check --fix .",
        "echo 'unclosed",
        "",
        "| ls",
    ],
)
def test_a_command_that_may_write_or_is_not_understood_does_more_than_look(command: str) -> None:
    assert not only_looks(command)


@given(st.text(max_size=30) | st.lists(st.sampled_from("ls|;&>< '\"rm#\n$()")).map("".join))
def test_no_command_however_odd_stops_the_look(command: str) -> None:
    assert only_looks(command) in {True, False}
