import json
import random
import types
from collections.abc import Iterator

import pytest

from pipeline.leaks.judge import judge
from pipeline.leaks.match import PART_BYTES, Matcher, parts_of
from pipeline.leaks.prints import SymbolPrints, symbols_prints
from tests.pipeline.leaks.plain_words import plain_line_keys, plain_run_keys

PATH = "pkg/ferment.py"
SOURCE = '''\
"""Sourdough."""


def feed_starter(jar, *, flour_grams=50, hydration=1.0):
    """Give a starter its daily flour and water, and say when it will have risen."""
    water_grams = flour_grams * hydration  # bakers' percentage
    if jar.headspace_ml < water_grams:
        raise OverflowError("the starter would climb out of its jar")
    jar.discard(fraction=jar.maturity / 2)
    return jar.clock.now() + jar.doubling_time(flour_grams, water_grams)
'''
(_, PRINTS) = sorted(symbols_prints(PATH, SOURCE.encode()), key=lambda it: it.symbol)
MATCHER = Matcher([PRINTS])
HEADER = SOURCE[SOURCE.index("def ") : SOURCE.index('    """Give')]
BODY = SOURCE[SOURCE.index("    water_grams") :]


def parts_in(piece: bytes, form: str = "text") -> set[str]:
    """Return the parts of the function that a piece gives away."""
    return {part for it in judge(MATCHER.match(piece, form), [PRINTS]) for part in it.parts}


def test_a_copy_gives_everything_away() -> None:
    assert parts_in(SOURCE.encode()) == {"name", "signature", "docstring", "body"}


@pytest.mark.parametrize(
    "copy",
    [
        BODY.replace("    ", "\t\t\t"),
        BODY.replace("(", "(\n").replace(", ", ",\n        "),
        BODY.replace('"', "'").replace("  # bakers' percentage", ""),
        "\n".join(f"+{line}" for line in BODY.split("\n")),
        "\n".join(f"{number:6}\t{line}" for number, line in enumerate(BODY.split("\n"), 90)),
        "\n".join(
            f"pkg/ferment.py:{number}:{line}" for number, line in enumerate(BODY.split("\n"))
        ),
        BODY.replace("jar.discard(fraction=jar.maturity / 2)", "pass"),
        "".join(BODY.splitlines(keepends=True)[:3]),
        "".join(BODY.splitlines(keepends=True)[3:]),
    ],
    ids=["tabs", "wrapped", "quotes", "diff", "cat -n", "grep -n", "changed", "first", "second"],
)
def test_a_body_is_known_in_other_clothes(copy: str) -> None:
    assert "body" in parts_in(copy.encode())


def test_a_body_is_known_under_other_local_names() -> None:
    copy = SOURCE
    for old, new in {
        "jar": "pot",
        "flour_grams": "a",
        "water_grams": "b",
        "hydration": "h",
    }.items():
        copy = copy.replace(old, new)
    copy = copy.replace("climb out of its pot", "climb out of its jar")
    assert "body" in parts_in(copy.encode())


def test_a_stub_gives_the_signature_and_no_body_away() -> None:
    assert parts_in(HEADER.encode() + b" ...\n") == {"name", "signature"}


def test_prose_gives_the_docstring_away_whatever_its_quotes_and_wrapping() -> None:
    prose = "<p>Give a starter its daily\nflour and water, and say when it will have risen.</p>"
    assert parts_in(prose.encode()) == {"docstring"}


def test_calls_and_unrelated_code_give_no_more_than_the_name_away() -> None:
    call = b"done = feed_starter(jar, flour_grams=20, hydration=1.0)\nprint(jar.clock.now())\n"
    assert parts_in(call) == {"name"}
    assert MATCHER.match(b"def main(argv):\n    return run(argv[1:])\n" * 50, "text") == frozenset()


def code_lines(code: types.CodeType) -> Iterator[str]:
    nested = [it for it in code.co_consts if isinstance(it, types.CodeType)]
    plain = [it if isinstance(it, str) else repr(it) for it in code.co_consts if it not in nested]
    names = {"name": code.co_name, "qualname": code.co_qualname, "names": list(code.co_names)}
    yield json.dumps(names | {"varnames": list(code.co_varnames), "consts": plain})
    for it in nested:
        yield from code_lines(it)


def test_bytecode_gives_everything_away() -> None:
    lines = code_lines(compile(SOURCE, PATH, "exec"))
    found = parts_in("\n".join(lines).encode(), "code")
    assert found == {"name", "signature", "docstring", "body"}


def test_bytecode_of_another_function_of_that_name_gives_no_body_away() -> None:
    other = "def feed_starter(jar):\n    return jar.engine.crank(jar.battery)\n"
    lines = code_lines(compile(other, PATH, "exec"))
    assert parts_in("\n".join(lines).encode(), "code") == {"name"}


def test_a_binary_gives_names_signatures_and_texts_away() -> None:
    words = ["feed_starter", "jar", "flour_grams", "hydration"]
    cached = b"\x04".join(bytes([0x14 + 2 * len(it)]) + it.encode() for it in words)
    assert parts_in(b"\x00\xff" * 40 + cached + b"\x04", "binary") == {"name", "signature"}
    assert PRINTS.literals.keys() & MATCHER.match(
        b"\x7fELF\x00the starter would climb out of its jar\x00", "binary"
    )


def test_what_stands_across_the_parts_of_a_long_piece_is_found() -> None:
    draw = random.Random(5)
    text = b"\n".join(
        b" ".join(b"word%d" % draw.randrange(10**6) for _ in range(draw.randrange(9)))
        for _ in range(PART_BYTES // 12)
    )
    assert len(text) > 2 * PART_BYTES
    keys = dict.fromkeys(plain_line_keys(text) + plain_run_keys(text), 9.0)
    assert Matcher([SymbolPrints(symbol="a:", lines=keys)]).match(text, "text") == keys.keys()


def test_parts_hold_every_byte_even_of_a_text_without_lines() -> None:
    text = bytes(range(65, 91)) * 400
    parts = list(parts_of(text, size=1000, overlap=100))
    assert parts[0] + b"".join(part[100:] for part in parts[1:]) == text


def test_the_digest_tells_the_keys_and_their_kinds_apart() -> None:
    one, same = (SymbolPrints(symbol=it, lines={5: 1.0}) for it in ("a:", "b:"))
    other = SymbolPrints(symbol="a:", grams={5: 1.0})
    assert Matcher([one]).digest == Matcher([same]).digest != Matcher([other]).digest


def test_a_matcher_without_keys_finds_nothing() -> None:
    assert Matcher([]).match(SOURCE.encode(), "text") == frozenset()
    assert Matcher([]).match(b"", "binary") == frozenset()
