import pytest

from pipeline.leaks.signatures import Signature, signatures_in_binary, signatures_in_text

CONVERT = Signature(key=7, name=b"convert", parameters=(b"amount", b"source", b"target"))
# As mypy 2 writes it: each word behind its length.
CACHED = (
    b"\x042convert\x14\x1eP\x04 amount\x04*source\x04Rtarget\x15\x1e\x14\x04>units.convert\x03\x14"
)


@pytest.mark.parametrize(
    "text",
    [
        b"def convert(amount, source, target='g'):",
        b"async def convert(\n    amount: dict[str, tuple[int, ...]],\n    source, *, target): ...",
        b'class A:\n    def convert(self, amount, source, target: str = "g", **rest) -> float: ...',
        b'{"name": "convert", "arg_kinds": [0, 0, 1], "arg_names": ["amount", "source", "target"]}',
    ],
)
def test_a_definition_is_found_with_its_parameters_in_order(text: bytes) -> None:
    assert list(signatures_in_text(text, [CONVERT])) == [7]


@pytest.mark.parametrize(
    "text",
    [
        b"print(convert(amount, source, target='g'))",
        b"def convert(amount, source): return target",
        b"def convert(target, source, amount): ...",
        b"def convert(amounts, source, target): ...",
        b"def converted(amount, source, target): ...",
        b'"convert" is unlike "amount", source and target',
    ],
)
def test_a_call_or_another_definition_is_no_signature(text: bytes) -> None:
    assert list(signatures_in_text(text, [CONVERT])) == []


def test_in_a_binary_the_words_have_to_stand_near_each_other_in_order() -> None:
    assert list(signatures_in_binary(CACHED, [CONVERT])) == [7]
    assert list(signatures_in_binary(CACHED.replace(b"*source", b"*other!"), [CONVERT])) == []
    assert list(signatures_in_binary(b"convert" + bytes(2000) + CACHED[9:], [CONVERT])) == []
