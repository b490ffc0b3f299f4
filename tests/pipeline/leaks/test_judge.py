from pipeline.leaks.judge import Recovered, judge, provable
from pipeline.leaks.prints import SymbolPrints, symbols_prints


def prints_of(**kinds: dict[int, float]) -> SymbolPrints:
    return SymbolPrints(symbol="a.py:f", name="f", **kinds)


LONG = prints_of(lines=dict.fromkeys(range(20), 5.0), names={100: 9.0}, signatures={101: 12.0})


def test_a_share_of_a_long_body_is_enough_and_a_line_of_it_is_not() -> None:
    some = judge(frozenset(range(8)), [LONG])
    assert some == (Recovered(symbol="a.py:f", parts=("body",), share=0.4),)
    assert judge(frozenset([3]), [LONG]) == ()


def test_parts_come_in_order_and_a_symbol_without_any_is_left_out() -> None:
    other = prints_of(lines={500: 9.0})
    (found,) = judge(frozenset({100, 101, *range(20)}), [other, LONG])
    assert found.parts == ("name", "signature", "body")
    assert found.share == 1.0


def test_a_short_body_needs_its_name_beside_it() -> None:
    short = prints_of(lines={1: 4.0, 2: 3.0}, names={100: 7.0})
    assert judge(frozenset({1, 2}), [short]) == ()
    assert judge(frozenset({1, 2, 100}), [short])[0].parts == ("name", "body")


def test_bytecode_of_a_common_name_needs_more_than_that_of_a_rare_one() -> None:
    codes = dict.fromkeys(range(10), 1.2)
    assert judge(frozenset(codes), [prints_of(codes=codes)]) == ()
    named = prints_of(codes=codes, names={100: 7.0})
    assert "body" in judge(frozenset({100, *codes}), [named])[0].parts


def test_what_cannot_be_proven_is_said() -> None:
    source = (
        b"def get(self):\n    return self.value\n\n\ndef zorbulate(quux_count, wibble):\n    pass\n"
    )
    prints = {it.name: it for it in symbols_prints("a.py", source)}
    assert provable(prints["get"]) == ()
    assert provable(prints["zorbulate"]) == ("name", "signature")
