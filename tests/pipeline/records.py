"""Records made for tests: any that a schema allows, and blank ones."""

from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

SCALARS = {
    str: st.text(max_size=20),
    int: st.integers(-(2**63), 2**63 - 1),
    float: st.floats(allow_nan=False),
    bool: st.booleans(),
}


def values(hint: Any) -> st.SearchStrategy[Any]:
    if hint in SCALARS:
        return SCALARS[hint]
    if get_origin(hint) is Literal:
        return st.sampled_from(get_args(hint))
    if get_origin(hint) is tuple:
        return st.lists(values(get_args(hint)[0]), max_size=3).map(tuple)
    if get_origin(hint) is UnionType:
        return st.none() | values(next(it for it in get_args(hint) if it is not NoneType))
    return st.builds(hint, **{name: values(part) for name, part in get_type_hints(hint).items()})


def blank(hint: Any) -> Any:
    """Return an empty string, a zero, an empty tuple, None, or a record of such."""
    if hint in SCALARS:
        return hint()
    if get_origin(hint) is Literal:
        return get_args(hint)[0]
    if get_origin(hint) is tuple:
        return ()
    if get_origin(hint) is UnionType:
        return None
    return hint(**{name: blank(part) for name, part in get_type_hints(hint).items()})
