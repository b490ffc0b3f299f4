"""Options as Features: who they are, what their tasks are like, that a stub is none."""

import textwrap

import pytest

from pipeline.desk import Folders, open_desk
from pipeline.make import make_task
from pipeline.prepare import Prepared, prepare_repo
from pipeline.sandbox.protocol import Sandbox
from pipeline.selection import Choice
from pipeline.task.grade import Desk, grade
from pipeline.task.record import Feature, Task
from pipeline.task.stub import stub_patch
from pipeline.task.tree import read_tree
from tests.pipeline.conftest import MakeTree, RepoFor

FILES = {
    "reader/__init__.py": "from reader.core import Reader, read\n",
    "reader/core.py": '''\
        """Read lines."""

        import re

        _ODD = re.compile("[^a-z]")


        def _refuse(word):
            if _ODD.search(word):
                raise ValueError(word)


        def read(text, *, strict=False, limit=None):
            """Split a text into words.

            :param strict: Refuse words that hold anything but small letters, with a `ValueError`.
            :param limit: How many words at most.
            """
            words = text.split()
            if strict:
                for word in words:
                    _refuse(word)
            return words[:limit]


        class Reader:
            """Read again and again."""

            def __init__(self, text, upper=False):
                self.text = text
                self.upper = upper

            def words(self):
                found = read(self.text)
                if self.upper:
                    found = [word.upper() for word in found]
                return found
        ''',
    "reader/cli.py": '''\
        """Read a text from the command line."""

        import argparse

        from reader.core import read


        def make_parser():
            parser = argparse.ArgumentParser()
            parser.add_argument("text")
            parser.add_argument("--shout", action="store_true", help="answer in large letters")
            return parser


        def main(argv):
            args = make_parser().parse_args(argv)
            text = " ".join(read(args.text))
            if args.shout:
                text = text.upper()
            return text
        ''',
    "tests/test_cli.py": """\
        import pytest

        from reader.cli import main


        @pytest.mark.parametrize("text", ["a", "b", "a b", ""])
        def test_text_is_read(text):
            assert main([text]) == text


        def test_a_shout_is_large():
            assert main(["--shout", "a"]) == "A"


        def test_a_shout_has_words():
            assert main(["a  b", "--shout"]) == "A B"
        """,
    "tests/test_core.py": """\
        import pytest

        from reader import Reader, read


        @pytest.mark.parametrize("text", ["", "a", "a b", "a  b", " a", "a1", "B c"])
        def test_words_are_split(text):
            assert read(text) == text.split()
            assert Reader(text).words() == text.split()


        @pytest.mark.parametrize("text", ["a", "b c", "d"])
        def test_all_words_are_read(text):
            assert len(read(text)) == len(text.split())
            assert len(Reader(text).words()) == len(text.split())


        def test_a_strict_reader_refuses_numbers():
            with pytest.raises(ValueError):
                read("a 1", strict=True)


        def test_a_strict_reader_accepts_letters():
            assert read("a b", strict=True) == ["a", "b"]
            with pytest.raises(ValueError):
                read("A b", strict=True)


        def test_letters_can_be_large():
            assert Reader("a b", upper=True).words() == ["A", "B"]


        def test_large_letters_stay():
            assert Reader("A", upper=True).words() == ["A"]
            assert Reader("c", True).words() == ["C"]


        def test_no_more_than_the_limit_is_read():
            assert read("a b c", limit=2) == ["a", "b"]
        """,
}


@pytest.fixture(scope="session")
def reader(make_tree: MakeTree, repo_for: RepoFor, folders: Folders, sandbox: Sandbox) -> Prepared:
    """Return the reader, measured and traced, with its options alone."""
    tree = make_tree({path: textwrap.dedent(text) for path, text in FILES.items()})
    choice = Choice(kinds=("option",))
    result = prepare_repo(
        repo_for(tree, name="reader"), folders=folders, sandbox=sandbox, choice=choice
    )
    assert isinstance(result, Prepared), result
    return result


@pytest.fixture(scope="session")
def reader_desk(reader: Prepared, folders: Folders, sandbox: Sandbox) -> Desk:
    desk = open_desk(
        reader.snapshot,
        reader.environment,
        command=reader.repo.test,
        folders=folders,
        sandbox=sandbox,
    )
    assert isinstance(desk, Desk), desk
    return desk


@pytest.fixture(scope="session")
def strict(reader: Prepared, reader_desk: Desk, folders: Folders) -> Task:
    """Return the task of the option `strict`."""
    feature = features_of(reader)["reader.core.read(strict=)"]
    task = make_task(feature, prepared=reader, desk=reader_desk, folders=folders, seed=0)
    assert isinstance(task, Task), task
    return task


@pytest.fixture(scope="session")
def shout(reader: Prepared, reader_desk: Desk, folders: Folders) -> Task:
    """Return the task of the flag `--shout`."""
    feature = features_of(reader)["--shout of reader.cli.make_parser"]
    task = make_task(feature, prepared=reader, desk=reader_desk, folders=folders, seed=0)
    assert isinstance(task, Task), task
    return task


def features_of(prepared: Prepared) -> dict[str, Feature]:
    return {it.title: it for slot in prepared.slots for it in slot}


def test_an_option_is_named_by_its_function_or_class_and_has_the_tests_that_pass_it(
    reader: Prepared,
) -> None:
    features = features_of(reader)
    assert {title: it.tests for title, it in features.items()} == {
        "reader.core.read(strict=)": (
            "tests/test_core.py::test_a_strict_reader_refuses_numbers",
            "tests/test_core.py::test_a_strict_reader_accepts_letters",
        ),
        "reader.core.Reader(upper=)": (
            "tests/test_core.py::test_letters_can_be_large",
            "tests/test_core.py::test_large_letters_stay",
        ),
        "--shout of reader.cli.make_parser": (
            "tests/test_cli.py::test_a_shout_is_large",
            "tests/test_cli.py::test_a_shout_has_words",
        ),
    }
    assert {it.kind for it in features.values()} == {"option"}
    assert features["reader.core.read(strict=)"].option == "strict"
    assert features["reader.core.read(strict=)"].num_lines == 9


def test_an_option_without_enough_behind_it_is_left_out_with_the_reason(reader: Prepared) -> None:
    reasons = {it.subject: it.reject.reason for it in reader.left_out}
    assert reasons["reader.core.read(limit=)"] == "nothing_to_hide"


def test_the_deletion_of_an_option_takes_its_helpers_and_leaves_the_rest(strict: Task) -> None:
    removed = [
        line[1:].strip()
        for line in strict.deletion.patch.splitlines()
        if line.startswith("-") and not line.startswith("---") and line[1:].strip()
    ]
    assert removed == [
        "import re",
        '_ODD = re.compile("[^a-z]")',
        "def _refuse(word):",
        "if _ODD.search(word):",
        "raise ValueError(word)",
        "def read(text, *, strict=False, limit=None):",
        ":param strict: Refuse words that hold anything but small letters, with a `ValueError`.",
        "if strict:",
        "for word in words:",
        "_refuse(word)",
    ]
    assert strict.deletion.seams == (
        "reader/core.py:_ODD",
        "reader/core.py:_refuse",
        "reader/core.py:re",
    )


def test_the_targets_of_an_option_break_as_it_is_not_taken(strict: Task) -> None:
    assert [(it.ablated, it.symptom) for it in strict.evidence.fail_to_pass] == [
        ("failed", "TypeError"),
        ("failed", "TypeError"),
    ]


def test_a_stub_takes_an_option_and_ignores_it_and_solves_nothing(
    strict: Task, reader_desk: Desk
) -> None:
    snapshot = read_tree(reader_desk.tree)
    patch = stub_patch(strict, snapshot)
    assert "+def read(text, *, strict=False, limit=None):" in patch
    assert "+    if strict" not in patch
    assert grade(strict, patch, desk=reader_desk).verdict == "unsolved"
    assert grade(strict, strict.deletion.gold_patch, desk=reader_desk).verdict == "solved"


def test_the_wordings_tell_name_signature_default_and_meaning_of_an_option(strict: Task) -> None:
    for instruction in strict.instructions:
        assert "`strict`" in instruction.text
        assert "def read(text, *, strict=False, limit=None): ..." in instruction.text
        assert "Refuse words that hold anything but small letters" in instruction.text
        assert "How many words at most" not in instruction.text
        assert "_refuse(" not in instruction.text


def test_a_stub_of_a_flag_adds_it_to_the_parser_and_does_nothing_with_it(
    shout: Task, reader_desk: Desk
) -> None:
    patch = stub_patch(shout, read_tree(reader_desk.tree))
    added = [line for line in patch.splitlines() if line.startswith("+") and line[1:2] == " "]
    assert [line[1:].strip() for line in added] == [
        'parser.add_argument("--shout", action="store_true", help="answer in large letters")'
    ]
    assert grade(shout, patch, desk=reader_desk).verdict == "unsolved"


def test_the_wordings_tell_the_help_of_a_flag_and_not_its_code(shout: Task) -> None:
    for instruction in shout.instructions:
        assert "command line" in instruction.text
        assert "`--shout`" in instruction.text
        assert "answer in large letters" in instruction.text
        assert "add_argument(" not in instruction.text
        assert "upper" not in instruction.text
