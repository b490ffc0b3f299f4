"""Turn records into Arrow rows and back, by a schema read from their type hints alone."""

import dataclasses
import functools
from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import pyarrow as pa

from pipeline.task.record import SCHEMA_VERSION

Record = TypeVar("Record")
Row = dict[str, object]

VERSION_KEY = b"regrow.schema_version"
SCALARS: dict[object, pa.DataType] = {
    str: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
}


def schema_of(cls: type) -> pa.Schema:
    """Return the Arrow schema of a record class.

    Nothing is inferred from data, so a column of empty lists keeps its type. The metadata carries
    the schema version under `regrow.schema_version`.

    Raises:
        TypeError: a field has a type that no column holds.
    """
    return pa.schema(_arrow_fields(cls), metadata={VERSION_KEY: str(SCHEMA_VERSION).encode()})


def to_row(record: object) -> Row:
    r"""Return a record as plain dicts, lists and scalars; the inverse of `from_row`.

    A lone surrogate, which UTF-8 and therefore Parquet cannot hold, becomes its backslash escape:
    `"\udc80"` is kept as the six characters `\\udc80`.
    """
    cls: object = type(record)
    return {name: _plain(getattr(record, name)) for name in _hints(cls)}


def from_row(cls: type[Record], row: Mapping[str, object]) -> Record:
    """Return the record of class `cls` that `to_row` turned into `row`.

    Raises:
        TypeError: a value is not what its field takes.
        KeyError: a field is missing.
    """
    return cls(**_values(cls, row))


def _arrow_fields(cls: object) -> list[pa.Field]:
    return [pa.field(name, _arrow_type(hint)) for name, hint in _hints(cls).items()]


def _arrow_type(hint: object) -> pa.DataType:
    hint, _ = _required(hint)
    if hint in SCALARS:
        return SCALARS[hint]
    if get_origin(hint) is Literal:
        return pa.string()
    if item := _item_of(hint):
        return pa.list_(_arrow_type(item))
    return pa.struct(_arrow_fields(hint))


@functools.cache
def _hints(cls: object) -> dict[str, object]:
    """Return the type of each field, in order of declaration; reading hints is slow, so once."""
    if not (isinstance(cls, type) and dataclasses.is_dataclass(cls)):
        raise TypeError(f"no column holds {cls!r}; expected str, int, float, bool or a record")
    hints = get_type_hints(cls)
    return {field.name: hints[field.name] for field in dataclasses.fields(cls)}


def _item_of(hint: object) -> object:
    """Return X of `tuple[X, ...]`, None of any other type."""
    args = get_args(hint)
    return args[0] if get_origin(hint) is tuple and args[1:] == (...,) else None


def _required(hint: object) -> tuple[object, bool]:
    """Return X and True of `X | None`, any other type as it is and False."""
    parts = get_args(hint) if get_origin(hint) is UnionType else ()
    is_optional = len(parts) == len((object, NoneType)) and NoneType in parts
    return (next(it for it in parts if it is not NoneType), True) if is_optional else (hint, False)


def _plain(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return to_row(value) if dataclasses.is_dataclass(value) else value


def _values(cls: object, row: Mapping[str, object]) -> dict[str, Any]:
    return {name: _typed(hint, row[name]) for name, hint in _hints(cls).items()}


def _typed(hint: object, value: object) -> object:
    hint, is_optional = _required(hint)
    if is_optional and value is None:
        return None
    item = _item_of(hint)
    if item is not None and isinstance(value, list):
        return tuple(_typed(item, it) for it in value)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type) and isinstance(value, dict):
        return hint(**_values(hint, value))
    if item is not None or dataclasses.is_dataclass(hint) or type(value) not in _plain_types(hint):
        raise TypeError(f"{value!r}: expected {getattr(hint, '__name__', hint)}")
    return value


def _plain_types(hint: object) -> tuple[object, ...]:
    """Return the types of a scalar; a whole number may stand for a float, a choice is a text."""
    if hint is float:
        return (float, int)
    return (hint,) if hint in SCALARS else (str,)
