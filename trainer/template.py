"""Render a chat template with marks in place of contents, to learn what it puts around them."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import jinja2

from pipeline.agent.schemas import Tool
from trainer.env import Message

# Letters and digits alone: no template changes them.
MARK = re.compile(r"Zq([a-z]+\d+)qZ")
# Shown to a template to see whether it shows it to the policy.
_PROBE = Tool(name="zqprobe", description="Look.", schema={"type": "object", "properties": {}})


class ChatTemplateError(ValueError):
    """The template cannot write these messages, which no other try would mend."""


class Template:
    """Owns a tokenizer's template; all that it returns has marks in place of contents."""

    def __init__(
        self, apply: Callable[..., object], *, hint_role: Literal["user", "system"]
    ) -> None:
        """Learn what the template does.

        Raises:
            ChatTemplateError: it cannot write an Episode: leaves out tools or results, changes
                earlier messages when one is added.
        """
        self._apply = apply
        self._results: dict[int, str] = {}
        asked = [_marked("user", "message0")]
        self._before = self._render(asked)
        self.header = _rest(self._render(asked, add_generation_prompt=True), self._before)
        replied = self._render([*asked, _marked("assistant", "reply0")])
        # The end of a message, perhaps a line break.
        self.closing = _behind(replied, "reply0", what="what the policy said")
        self.message(hint_role)
        self.message("user")
        self.results(1)
        self.beginning([Message(role="user", content="")], [_PROBE])

    def beginning(self, messages: Sequence[Message], tools: Sequence[Tool]) -> str:
        """Render how a conversation begins, without a header; marks `message0`, `message1`."""
        marked = [_marked(it.role, f"message{number}") for number, it in enumerate(messages)]
        functions = [_function(it) for it in tools]
        text = self._render(marked, tools=functions or None)
        for number, message in enumerate(messages):
            _behind(text, f"message{number}", what=f"a message of the {message.role}'s")
        if left := [it.name for it in tools if it.name not in text]:
            raise ChatTemplateError(f"the chat template leaves out the tools {', '.join(left)}")
        return text

    def message(self, role: Literal["user", "system"]) -> str:
        """Render a message that stands behind another: mark `text0`."""
        text = _rest(
            self._render([_marked("user", "message0"), _marked(role, "text0")]), self._before
        )
        _behind(text, "text0", what=f"a message of the {role}'s in between")
        return text

    def results(self, num_results: int) -> str:
        """Render the end of a reply and its results; marks `result0`…, perhaps `name0`, `id0`."""
        if num_results not in self._results:
            reply = [_marked("user", "message0"), _marked("assistant", "reply0")]
            whole = self._render([*reply, *map(_result, range(num_results))])
            text = _behind(whole, "reply0", what="what the policy said")
            for number in range(num_results):
                _behind(text, f"result{number}", what="the result of a call")
            self._results[num_results] = text
        return self._results[num_results]

    def _render(self, messages: Sequence[Mapping[str, object]], **options: object) -> str:
        try:
            return str(self._apply(messages, tokenize=False, **options))
        except (jinja2.TemplateError, TypeError, ValueError) as error:
            roles = ", ".join(str(it["role"]) for it in messages)
            why = " ".join(str(error).split())
            raise ChatTemplateError(
                f"the chat template takes no messages of {roles}: {why}"
            ) from None


def _mark(name: str) -> str:
    return f"Zq{name}qZ"


def _marked(role: str, name: str) -> dict[str, object]:
    return {"role": role, "content": _mark(name)}


def _result(number: int) -> dict[str, object]:
    names = {"tool_call_id": _mark(f"id{number}"), "name": _mark(f"name{number}")}
    return {**_marked("tool", f"result{number}"), **names}


def _function(tool: Tool) -> dict[str, object]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    return {"type": "function", "function": function}


def _behind(text: str, name: str, *, what: str) -> str:
    """Return what stands behind a mark, which must be there."""
    _, found, behind = text.rpartition(_mark(name))
    if not found:
        raise ChatTemplateError(f"the chat template leaves out {what}")
    return behind


def _rest(longer: str, shorter: str) -> str:
    if not longer.startswith(shorter):
        raise ChatTemplateError(
            "the chat template changes earlier messages when one is added;"
            " expected one that only appends"
        )
    return longer[len(shorter) :]
