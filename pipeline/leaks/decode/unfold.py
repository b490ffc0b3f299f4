"""Decode a file recursively until only pieces are left that can be matched."""

from collections.abc import Iterator

from pipeline.leaks.budget import Meter, Why
from pipeline.leaks.decode.carve import carved_parts
from pipeline.leaks.decode.escapes import diff_parts, escaped_parts, inline_parts
from pipeline.leaks.decode.kinds import BINARY, MEDIA, TEXT, Kind, kind_of
from pipeline.leaks.decode.mapped import windows
from pipeline.leaks.decode.markup import markup_parts
from pipeline.leaks.decode.piece import Data, Gap, Inner, Piece
from pipeline.sandbox.protocol import MIB

# A longer text is unwrapped in windows: one line of one may be cut in two, and is matched whole.
_WINDOW_BYTES = 8 * MIB
# What a text may be wrapped in; each of them looks first whether it is.
_WRAPPINGS = (escaped_parts, markup_parts, diff_parts, inline_parts)


def unfold(data: Data, meter: Meter, *, decoders: tuple[str, ...] = ()) -> Iterator[Piece | Gap]:
    """Yield every piece of a file, and what could not be read of it.

    Args:
        data: the content of the file.
        meter: stops at what the budget says.
        decoders: what the file was itself in.

    Raises:
        SpentError: the file, or the whole scan, has used too much; what was yielded stays true.
    """
    kind = kind_of(data)
    if kind is MEDIA or not len(data):
        return
    if kind is TEXT:
        yield from _text(data, meter, decoders)
    elif kind is BINARY:
        yield from _binary(data, meter, decoders)
    elif why := _obstacle(kind, data):
        yield Gap(decoders=decoders, why=why)
        yield from _binary(data, meter, decoders)
    else:
        yield from _opened(kind, data, meter, decoders)


def _obstacle(kind: Kind, data: Data) -> Why | None:
    """Say what keeps a file from being opened."""
    if kind.opener is None:
        return "no reader"
    return "too large" if kind.max_bytes is not None and len(data) > kind.max_bytes else None


def _opened(
    kind: Kind, data: Data, meter: Meter, decoders: tuple[str, ...]
) -> Iterator[Piece | Gap]:
    """Yield what is in a file; the plain bytes where nothing came out."""
    assert kind.opener is not None
    num_found = num_gaps = 0
    for found in kind.opener(data, meter):
        num_found += 1
        num_gaps += isinstance(found, Gap)
        yield from _below(found, meter, decoders)
    if num_gaps == num_found:
        # What begins with it was tried.
        yield from _binary(data, meter, decoders, start=1)


def _below(found: Inner | Gap, meter: Meter, decoders: tuple[str, ...]) -> Iterator[Piece | Gap]:
    if isinstance(found, Gap):
        yield Gap(decoders=(*decoders, *found.decoders), why=found.why)
        return
    inside = (*decoders, found.label)
    if found.form == "text":
        yield from _text(found.data, meter, inside)
    elif found.form is not None:
        yield Piece(decoders=inside, form=found.form, data=found.data)
    elif len(inside) < meter.budget.depth:
        yield from unfold(found.data, meter, decoders=inside)
    else:
        yield from _too_deep(found.data, inside)


def _too_deep(data: Data, decoders: tuple[str, ...]) -> Iterator[Piece | Gap]:
    """Yield what is as deep as one may go, unopened."""
    kind = kind_of(data)
    yield Piece(decoders=decoders, form="text" if kind is TEXT else "binary", data=data)
    if kind not in {TEXT, MEDIA}:
        yield Gap(decoders=decoders, why="too deep")


def _text(data: Data, meter: Meter, decoders: tuple[str, ...]) -> Iterator[Piece | Gap]:
    """Yield a text, and what it is when taken out of what it is wrapped in."""
    yield Piece(decoders=decoders, form="text", data=data)
    if len(decoders) >= meter.budget.depth:
        return
    for _, window in windows(data, size=_WINDOW_BYTES):
        for found in _unwrapped(window, meter):
            yield from _below(found, meter, decoders)


def _unwrapped(text: bytes, meter: Meter) -> Iterator[Inner | Gap]:
    for wrapping in _WRAPPINGS:
        yield from (it for it in wrapping(text, meter) if isinstance(it, Gap) or it.data != text)


def _binary(
    data: Data, meter: Meter, decoders: tuple[str, ...], *, start: int = 0
) -> Iterator[Piece | Gap]:
    yield Piece(decoders=decoders, form="binary", data=data)
    for found in carved_parts(data, meter, start=start):
        yield from _below(found, meter, decoders)
