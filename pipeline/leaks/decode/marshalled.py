"""Read Python's marshal format, of any interpreter from 3.6 to 3.14, without running anything.

The format's own reader trusts its input: made-up bytes crash it.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass

# Deeper nesting is nothing that a compiler makes.
_MAX_DEPTH = 200
# Objects a byte, references followed; two bytes make one.
_MAX_GROWTH = 4
_REFERABLE = 0x80
_REFERENCE = ord("r")
_SHORT_TEXTS = frozenset(letter | flag for letter in b"zZ" for flag in (0, _REFERABLE))
_LOCAL = 0x20  # of the kinds of 3.11 and later: an argument or a variable
_FUNCTION = 0x2  # of a code object's flags: it has locals of its own
_NEW_LAYOUT, _POSITIONAL_ONLY = (3, 11), (3, 8)
_DIGIT_BITS = 15

Version = tuple[int, int]


class MarshalError(ValueError):
    """Bytes that no compiler wrote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeObject:
    """What of a code object tells where it came from."""

    name: str
    # Empty before 3.11, where it is not kept.
    qualname: str
    # Globals and attributes it uses.
    names: tuple[str, ...]
    # Arguments, then variables.
    varnames: tuple[str, ...]
    # Constants; nested code objects among them.
    consts: tuple[object, ...]
    is_function: bool


def read_code(data: bytes, start: int, *, version: Version) -> CodeObject:
    """Return the code object of a module.

    Raises:
        MarshalError: it is none.
    """
    try:
        code = _Reader(data, start, version).read()
    except (IndexError, struct.error, RecursionError, UnicodeError, OverflowError) as error:
        raise MarshalError(str(error)) from error
    if not isinstance(code, CodeObject):
        raise MarshalError(f"expected a code object, got {type(code).__name__}")
    return code


class _Reader:
    """Owns a position in marshalled bytes, and the objects that later ones refer to."""

    def __init__(self, data: bytes, start: int, version: Version) -> None:
        self._data = data
        self._at = start
        self._version = version
        self._known: list[object] = []
        # How many objects are in each of them, and were read in all: those behind references too,
        # since tuples of references to tuples of references grow beyond all bounds.
        self._sizes: list[int] = []
        self._size = 0
        self._depth = 0

    def read(self) -> object:
        kind = self._data[self._at]
        self._at += 1
        reader = _READERS.get(kind & ~_REFERABLE)
        if reader is None:
            raise MarshalError(f"unknown kind of object {kind}")
        if not kind & _REFERABLE:
            return reader(self)
        # Its number is taken before those of what it holds.
        number, size = len(self._known), self._size
        self._known.append(None)
        self._sizes.append(0)
        self._known[number] = value = reader(self)
        self._sizes[number] = self._size - size
        return value

    def long(self) -> int:
        value: int = _LONG(self._data, self._at)[0]
        self._at += 4
        return value

    def reference(self) -> object:
        number = self.long()
        self._size += self._sizes[number]
        return self._known[number]

    def string(self) -> bytes:
        return self.take(self.long())

    def take(self, size: int) -> bytes:
        end = self._at + size
        if size < 0 or end > len(self._data):
            raise MarshalError("an object is longer than the rest")
        found = self._data[self._at : end]
        self._at = end
        return found

    def byte(self) -> int:
        value = self._data[self._at]
        self._at += 1
        return value

    def items(self, count: int) -> list[object]:
        if not 0 <= count <= len(self._data):
            raise MarshalError("more items than bytes")
        self._depth += 1
        self._size += count
        if self._depth > _MAX_DEPTH:
            raise MarshalError("nested too deep")
        found = self._many(count)
        self._depth -= 1
        if self._size > _MAX_GROWTH * len(self._data):
            raise MarshalError("references to references")
        return found

    def _many(self, count: int) -> list[object]:
        """Read objects; most are references and short texts, and need no call of their own."""
        data, known, found = self._data, self._known, list[object]()
        at = self._at
        for _ in range(count):
            kind = data[at]
            if kind == _REFERENCE:
                number: int = _LONG(data, at + 1)[0]
                at += 5
                self._size += self._sizes[number]
                found.append(known[number])
            elif kind in _SHORT_TEXTS:
                start, at = at + 2, at + 2 + data[at + 1]
                text = data[start:at].decode("latin-1")
                if kind & _REFERABLE:
                    known.append(text)
                    self._sizes.append(0)
                found.append(text)
            else:
                self._at = at
                found.append(self.read())
                at = self._at
        if at > len(data):
            raise MarshalError("an object is longer than the rest")
        self._at = at
        return found

    def dictionary(self) -> object:
        found = []
        while self._data[self._at] != ord("0"):
            found += self.items(2)
        self._at += 1
        return tuple(found)

    def integer(self) -> int:
        size = self.long()
        digits = self.take(2 * abs(size))
        value: int = sum(
            digit << (_DIGIT_BITS * place)
            for place, (digit,) in enumerate(struct.iter_unpack("<H", digits))
        )
        return -value if size < 0 else value

    def code(self) -> CodeObject:
        is_new = self._version >= _NEW_LAYOUT
        num_counts = 4 + (self._version >= _POSITIONAL_ONLY) - is_new
        self._at += 4 * num_counts
        flags = self.long()
        _, consts, names, variables = self.items(4)
        if is_new:
            kinds, _, name, qualname = self.items(4)
            variables = _locals(variables, kinds)
        else:
            _, _, _, name = self.items(4)
            qualname = ""
        self._at += 4
        self.items(2 if is_new else 1)
        return CodeObject(
            name=name if isinstance(name, str) else "",
            qualname=qualname if isinstance(qualname, str) else "",
            names=_texts(names),
            varnames=_texts(variables),
            consts=consts if isinstance(consts, tuple) else (),
            is_function=bool(flags & _FUNCTION),
        )


def _texts(value: object) -> tuple[str, ...]:
    return tuple(it for it in value if isinstance(it, str)) if isinstance(value, tuple) else ()


def _locals(names: object, kinds: object) -> tuple[str, ...]:
    """Return the arguments and variables among all that a function keeps."""
    if not isinstance(kinds, bytes):
        return ()
    return tuple(name for name, kind in zip(_texts(names), kinds, strict=False) if kind & _LOCAL)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogatepass")


def _ascii(raw: bytes) -> str:
    return raw.decode("latin-1")


_LONG = struct.Struct("<i").unpack_from
_DOUBLE, _PAIR = struct.Struct("<d").unpack, struct.Struct("<2d").unpack


def _constant(value: object) -> Callable[[_Reader], object]:
    return lambda _: value


# By the letter that marks the kind.
_READERS: dict[int, Callable[[_Reader], object]] = {
    ord("N"): _constant(None),
    ord("T"): _constant(True),  # noqa: FBT003  the value of a constant
    ord("F"): _constant(False),  # noqa: FBT003
    ord("."): _constant(...),
    ord("S"): _constant(StopIteration),
    ord("0"): _constant(None),
    ord("i"): _Reader.long,
    ord("l"): _Reader.integer,
    ord("g"): lambda it: _DOUBLE(it.take(8))[0],
    ord("f"): lambda it: float(it.take(it.byte())),
    ord("y"): lambda it: complex(*_PAIR(it.take(16))),
    ord("s"): _Reader.string,
    ord("r"): _Reader.reference,
    ord("u"): lambda it: _text(it.string()),
    ord("t"): lambda it: _text(it.string()),
    ord("a"): lambda it: _ascii(it.string()),
    ord("A"): lambda it: _ascii(it.string()),
    ord("z"): lambda it: _ascii(it.take(it.byte())),
    ord("Z"): lambda it: _ascii(it.take(it.byte())),
    ord(")"): lambda it: tuple(it.items(it.byte())),
    ord("("): lambda it: tuple(it.items(it.long())),
    ord("["): lambda it: tuple(it.items(it.long())),
    ord("<"): lambda it: tuple(it.items(it.long())),
    ord(">"): lambda it: tuple(it.items(it.long())),
    ord("{"): _Reader.dictionary,
    ord(":"): lambda it: tuple(it.items(3)),
    ord("c"): _Reader.code,
}
