"""Take one item out of a list of parameters or arguments, commas and layout kept."""

from collections.abc import Sequence

import libcst as cst

Parameter = cst.Param | cst.ParamStar | cst.ParamSlash


def without_argument(call: cst.Call, number: int) -> cst.Call:
    """Return a call without one of its arguments."""
    args = list(call.args)
    gone = args.pop(number)
    if not args:
        return call.with_changes(args=[], whitespace_before_args=cst.SimpleWhitespace(""))
    if number == len(args):
        args[-1] = args[-1].with_changes(
            comma=_comma(args[-1].comma, gone.comma),
            whitespace_after_arg=gone.whitespace_after_arg,
        )
    return call.with_changes(args=args)


def without_parameter(parameters: cst.Parameters, name: str) -> cst.Parameters | None:
    """Return parameters without the one of a name; None when none has that name and a default.

    Positional-only ones do not count.
    """
    items = _flat(parameters)
    named = [*parameters.params, *parameters.kwonly_params]
    if not any(it.name.value == name and it.default is not None for it in named):
        return None
    place = next(
        place
        for place, it in enumerate(items)
        if isinstance(it, cst.Param) and it.name.value == name
    )
    return _rebuilt(parameters, _drop(items, place))


def _flat(parameters: cst.Parameters) -> list[Parameter]:
    """Return the items between the brackets in order."""
    items = [
        *parameters.posonly_params,
        parameters.posonly_ind,
        *parameters.params,
        parameters.star_arg,
        *parameters.kwonly_params,
        parameters.star_kwarg,
    ]
    return [it for it in items if isinstance(it, Parameter)]


def _drop(items: Sequence[Parameter], place: int) -> list[Parameter]:
    """Drop an item, and the star before it that has nothing left to say."""
    kept = list(items)
    gone = kept.pop(place)
    before = kept[place - 1] if place else None
    after = kept[place] if place < len(kept) else None
    if after is None and before is not None:
        kept[-1] = _as_last(before, gone)
    is_void = after is None or (isinstance(after, cst.Param) and after.star == "**")
    if isinstance(before, cst.ParamStar) and is_void:
        return _drop(kept, place - 1)
    return kept


def _as_last(item: Parameter, gone: Parameter) -> Parameter:
    """Give an item the comma and the space that the one behind it had."""
    changed = item.with_changes(comma=_comma(item.comma, gone.comma))
    if isinstance(item, cst.Param) and isinstance(gone, cst.Param):
        return changed.with_changes(whitespace_after_param=gone.whitespace_after_param)
    return changed


def _comma(
    own: cst.Comma | cst.MaybeSentinel, gone: cst.Comma | cst.MaybeSentinel
) -> cst.Comma | cst.MaybeSentinel:
    """Return the comma of a dropped item, with the comment of the one before it."""
    if not isinstance(gone, cst.Comma):
        return gone
    space = gone.whitespace_after
    if not isinstance(space, cst.ParenthesizedWhitespace):
        return gone
    line = space.first_line.with_changes(comment=None, whitespace=cst.SimpleWhitespace(""))
    if isinstance(own, cst.Comma) and isinstance(own.whitespace_after, cst.ParenthesizedWhitespace):
        line = own.whitespace_after.first_line
    return gone.with_changes(whitespace_after=space.with_changes(first_line=line))


def _rebuilt(parameters: cst.Parameters, items: Sequence[Parameter]) -> cst.Parameters:
    names = {it.name.value: it for it in items if isinstance(it, cst.Param)}
    stars = [it for it in items if isinstance(it, cst.ParamStar)]
    slashes = [it for it in items if isinstance(it, cst.ParamSlash)]
    star, double = parameters.star_arg, parameters.star_kwarg
    if isinstance(star, cst.Param):
        star = names[star.name.value]
    elif isinstance(star, cst.ParamStar):
        star = stars[0] if stars else cst.MaybeSentinel.DEFAULT
    return parameters.with_changes(
        posonly_params=_those(parameters.posonly_params, names),
        posonly_ind=slashes[0] if slashes else cst.MaybeSentinel.DEFAULT,
        params=_those(parameters.params, names),
        star_arg=star,
        kwonly_params=_those(parameters.kwonly_params, names),
        star_kwarg=names[double.name.value] if double is not None else None,
    )


def _those(params: Sequence[cst.Param], names: dict[str, cst.Param]) -> list[cst.Param]:
    """Return what is left of some parameters, as it is now."""
    return [names[it.name.value] for it in params if it.name.value in names]
