import gc
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from pipeline.task.python_text import bodies_of, ending_of, must_parse, parse, split_lines

DEEP = "+".join(["(1"] * 40) + ")" * 40


@pytest.fixture
def busy_collector() -> Iterator[None]:
    """Let other threads run wherever the garbage collector does, which is nearly everywhere."""

    def pause(*_: object) -> None:
        time.sleep(0)

    before = gc.get_threshold()
    gc.callbacks.append(pause)
    gc.set_threshold(5)
    yield
    gc.set_threshold(*before)
    gc.callbacks.remove(pause)


@pytest.mark.usefixtures("busy_collector")
def test_threads_may_parse_at_once():
    with ThreadPoolExecutor(max_workers=4) as pool:
        trees = list(pool.map(must_parse, [DEEP] * 100))
    assert all(trees)


@pytest.mark.parametrize("text", ["def f(:", "\0", "(" * 1000, b"\xff", "\udcff"])
def test_what_python_cannot_read_is_none(text: bytes | str):
    assert parse(text) is None


def test_invalid_escapes_of_others_are_not_warned_of():
    assert parse(r"a = '\d'") is not None


def test_lines_end_where_the_tokenizer_ends_them():
    assert split_lines(b"a\x0cb\r\nc\rd\n\ne") == [b"a\x0cb\r\n", b"c\r", b"d\n", b"\n", b"e"]
    assert [ending_of(line) for line in split_lines(b"a\r\nb\n\nc")] == [b"\r\n", b"\n", b"\n", b""]


def test_bodies_are_found_by_the_names_of_their_classes():
    tree = must_parse("class A:\n    class B:\n        x = 1\nclass A:\n    y = 2\n")
    assert bodies_of(tree, []) == [tree.body]
    assert [len(body) for body in bodies_of(tree, ["A"])] == [1, 1]
    assert len(bodies_of(tree, ["A", "B"])) == 1
    assert bodies_of(tree, ["B"]) == []
