"""Say where arguments break the JSON Schema of a tool, without a word of what they were."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pipeline.agent.schemas import Tool

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """A rule that arguments break.

    Example: `Breach(key="path", rule="`path` is required")`.
    """

    # Where: `edits[0].path`; empty for the arguments themselves.
    key: str
    # For the policy.
    rule: str


def breaches(arguments: Mapping[str, object], tool: Tool) -> list[Breach]:
    """Return the rules that arguments break; a keyword that is not known here is no rule."""
    return list(_object(arguments, tool.schema, key=""))


def signature(tool: Tool) -> str:
    """Return a tool's arguments in one line: `read_file(path: string, first_line?: integer)`."""
    properties = _mapping(tool.schema.get("properties"))
    required = [*map(str, _list(tool.schema.get("required")))]
    arguments = (
        f"{name}{'' if name in required else '?'}: {_type_name(_mapping(rules))}"
        for name, rules in properties.items()
    )
    return f"{tool.name}({', '.join(arguments)})"


def _object(
    value: Mapping[str, object], rules: Mapping[str, object], *, key: str
) -> Iterator[Breach]:
    properties = _mapping(rules.get("properties"))
    prefix = f"{key}." if key else ""
    for name in map(str, _list(rules.get("required"))):
        if name not in value:
            yield Breach(key=f"{prefix}{name}", rule=f"`{prefix}{name}` is required")
    if rules.get("additionalProperties") is False and not value.keys() <= properties.keys():
        known = ", ".join(f"`{name}`" for name in properties)
        yield Breach(key=key, rule=f"the keys are {known} and no others" if known else "no keys")
    for name, inner in properties.items():
        if name in value:
            yield from _value(value[name], _mapping(inner), key=f"{prefix}{name}")


def _value(value: object, rules: Mapping[str, object], *, key: str) -> Iterator[Breach]:
    types = _types(rules)
    if types and not any(_is_of(value, name) for name in types):
        yield Breach(key=key, rule=f"`{key}` is of type {_type_name(rules)}")
        return
    choices = _list(rules.get("enum"))
    if choices and value not in choices:
        yield Breach(key=key, rule=f"`{key}` is one of {', '.join(map(str, choices))}")
    yield from _bounds(value, rules, key=key)
    if isinstance(value, dict):
        yield from _object(value, rules, key=key)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _value(item, _mapping(rules.get("items")), key=f"{key}[{number}]")


def _bounds(value: object, rules: Mapping[str, object], *, key: str) -> Iterator[Breach]:
    what, size = "", value
    if isinstance(value, str | list):
        what, size = "Length" if isinstance(value, str) else "Items", len(value)
    low, high = (f"min{what}", f"max{what}") if what else ("minimum", "maximum")
    if not isinstance(size, int | float) or isinstance(size, bool):
        return
    for name, word, sign in ((low, "at least", 1), (high, "at most", -1)):
        bound = rules.get(name)
        if isinstance(bound, int | float) and sign * size < sign * bound:
            yield Breach(key=key, rule=f"`{key}` {'has' if what else 'is'} {word} {bound}")


def _is_of(value: object, name: str) -> bool:
    # JSON tells truth values from numbers, Python does not.
    if isinstance(value, bool) and name != "boolean":
        return False
    return isinstance(value, _TYPES.get(name, (object,)))


def _types(rules: Mapping[str, object]) -> Sequence[str]:
    named = rules.get("type")
    return [named] if isinstance(named, str) else [*map(str, _list(named))]


def _type_name(rules: Mapping[str, object]) -> str:
    return " or ".join(_types(rules)) or "any"


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else ()
