"""Turn messages into tokens and sampled tokens into messages, each token once.

A template is rendered with marks in place of contents, and only what it puts around and after them
is taken: what stands in a context is never rendered again, and no content forges a special token.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Literal, Protocol

import numpy as np

from trainer.calls import CallFormat, Written, read_calls
from trainer.env import Message
from trainer.records import Ids, Tool, ToolCall, ToolResult
from trainer.settings import Settings

# Letters and digits alone: no template changes them.
_MARK = re.compile(r"Zq(\d+)qZ")
_UNTOLD = "(nothing)"


class ChatConfig(Settings):
    """How a model's messages are written."""

    # Who says a hint.
    hint_role: Literal["user", "system"] = "user"
    # How the model marks a call.
    calls: CallFormat = "hermes"


class Tokenizer(Protocol):
    """The part of a tokenizer of transformers that is used."""

    @property
    def chat_template(self) -> object:
        """The template; empty without one."""

    @property
    def eos_token_id(self) -> int | None:
        """What ends a text."""

    @property
    def apply_chat_template(self) -> Callable[..., object]:
        """Render messages."""

    @property
    def encode(self) -> Callable[..., list[int]]:
        """Return the ids of a text."""

    @property
    def decode(self) -> Callable[..., object]:
        """Return the text of ids."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rendered:
    """Tokens that end with the header of the policy's next message."""

    ids: Ids
    # Index in `ids` at which that header begins.
    header: int


class Chat:
    """Owns a tokenizer, and what its template puts around messages."""

    def __init__(self, tokenizer: Tokenizer, config: ChatConfig) -> None:
        """Learn what the template does.

        Raises:
            ValueError: there is no template, or it does more than put things around messages.
        """
        if not tokenizer.chat_template:
            raise ValueError("the tokenizer has no chat template; the model must be one that chats")
        self._tokenizer = tokenizer
        self._turn = Lock()
        self._config = config
        user = [_mark("user", 0)]
        with_reply = self._render([*user, _mark("assistant", 1)])
        asked = self._render(user, add_generation_prompt=True)
        self._header = _rest(asked, self._render(user))
        # What follows a reply: the end token, perhaps a line break.
        self._closing = with_reply.rpartition("Zq1qZ")[2]
        closing = self._encode(self._closing)
        ends = {tokenizer.eos_token_id, closing[0] if len(closing) else None}
        self.stop_ids = tuple(sorted(it for it in ends if it is not None))
        self._after: dict[int, str] = {}

    def prompt(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Rendered:
        """Render the beginning of a conversation."""
        marked = [_mark(it.role, number) for number, it in enumerate(messages)]
        contents = [it.content for it in messages]
        functions = [_function(it) for it in tools]
        text = self._render(marked, tools=functions or None)
        return self._with_header(self._fill(text, contents))

    def after(self, reply: Ids, results: Sequence[ToolResult]) -> Rendered:
        """Render what follows a sampled reply: the results of its calls, the next header.

        Args:
            reply: as sampled; its end token is added where it was cut.
            results: of its calls; without any, that nothing was called is all there is to say.
        """
        contents = [it.text or _UNTOLD for it in results]
        return self._with_header(self._fill(self._closed(reply, len(results)), contents))

    def message(self, text: str, *, role: Literal["user", "system"] = "user") -> Ids:
        """Render a whole message, to stand in front of a header."""
        before = [_mark("user", 0)]
        after = self._render([*before, _mark(role, 1)])
        return self._fill(_rest(after, self._render(before)), {1: text})

    def hint(self, text: str) -> Ids:
        """Render a hint as a whole message, to stand in front of a header."""
        return self.message(text, role=self._config.hint_role)

    def parse(self, reply: Ids) -> tuple[str, tuple[ToolCall, ...]]:
        """Return the text of a reply without its end token, and its calls by tokens of it."""
        said = reply[:-1] if len(reply) and int(reply[-1]) in self.stop_ids else reply
        text = self._decode(said)
        calls = (self._call(said, it) for it in read_calls(text, form=self._config.calls))
        return text, tuple(calls)

    def _call(self, said: Ids, written: Written) -> ToolCall:
        return ToolCall(
            name=written.name,
            arguments=written.arguments,
            raw=written.raw,
            error=written.error,
            start=self._token_at(said, written.first),
            end=self._token_at(said, written.last - 1) + 1,
        )

    def _token_at(self, said: Ids, place: int) -> int:
        """Return the number of the token that writes a character."""
        low, high = 0, len(said) - 1
        while low < high:
            middle = (low + high) // 2
            if len(self._decode(said[: middle + 1])) > place:
                high = middle
            else:
                low = middle + 1
        return low

    def _closed(self, reply: Ids, num_results: int) -> str:
        """Return what follows a reply up to the next header, with marks for results."""
        if num_results not in self._after:
            results = [{"role": "tool", "content": f"Zq{it}qZ"} for it in range(num_results)]
            conversation = [_mark("user", 100), _mark("assistant", 101), *results]
            self._after[num_results] = self._render(conversation).rpartition("Zq101qZ")[2]
        return self._cut_end(reply, self._after[num_results])

    def _cut_end(self, reply: Ids, rendered: str) -> str:
        """Leave out the end token of a reply that has one."""
        closing = self._encode(self._closing)[:1]
        if len(reply) and np.array_equal(reply[-1:], closing):
            return rendered.removeprefix(self._decode(closing))
        return rendered

    def _with_header(self, ids: Ids) -> Rendered:
        header = self._encode(self._header)
        return Rendered(ids=np.concatenate([ids, header]), header=len(ids))

    def _render(self, messages: list[dict[str, str]], **options: object) -> str:
        return str(self._tokenizer.apply_chat_template(messages, tokenize=False, **options))

    def _fill(self, text: str, contents: Sequence[str] | Mapping[int, str]) -> Ids:
        """Return the tokens of a rendered template, with contents in place of its marks."""
        parts: list[Ids] = list(self._parts(text, contents))
        return np.concatenate(parts) if parts else np.empty(0, np.int64)

    def _parts(self, text: str, contents: Sequence[str] | Mapping[int, str]) -> Iterator[Ids]:
        around = _MARK.split(text)
        yield self._encode(around[0])
        for number, following in zip(around[1::2], around[2::2], strict=True):
            # A text of the repository's or the model's is no special token, whatever it says.
            yield self._encode(contents[int(number)], split_special_tokens=True)
            yield self._encode(following)

    def _encode(self, text: str, **options: object) -> Ids:
        if not text:
            return np.empty(0, np.int64)
        # Whether special tokens are split is a state of the tokenizer, which threads share.
        with self._turn:
            ids = self._tokenizer.encode(text, add_special_tokens=False, **options)
        return np.array(ids, dtype=np.int64)

    def _decode(self, ids: Ids) -> str:
        return str(
            self._tokenizer.decode(
                ids.tolist(), skip_special_tokens=False, clean_up_tokenization_spaces=False
            )
        )


def _mark(role: str, number: int) -> dict[str, str]:
    return {"role": role, "content": f"Zq{number}qZ"}


def _function(tool: Tool) -> dict[str, object]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    return {"type": "function", "function": function}


def _rest(longer: str, shorter: str) -> str:
    if not longer.startswith(shorter):
        raise ValueError(
            "the chat template changes earlier messages when one is added;"
            " expected one that only appends"
        )
    return longer[len(shorter) :]
