"""Turn messages into tokens and sampled tokens into messages, each token once.

A template is rendered with marks in place of contents, and only what it puts around and after them
is taken: what stands in a context is never rendered again, and no content forges a special token.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, Literal, Protocol

import numpy as np

from pipeline.agent.schemas import Tool
from pipeline.agent.written import CallFormat, Written, read_calls
from trainer.env import Message
from trainer.records import Ids, ToolCall, ToolResult
from trainer.settings import Settings
from trainer.template import MARK, Template

# Stand for what cannot be left empty: a result without a word, a call without a name.
_UNTOLD, _UNNAMED = "(nothing)", "unknown"
_PIECES = ("a\n", " b", "\nc")


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
    def added_tokens_decoder(self) -> Mapping[int, Any]:
        """Tokens that stand for no text, by id; `special` where no text of a user's is one."""

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
        self._template = Template(tokenizer.apply_chat_template, hint_role=config.hint_role)
        self._special = {
            it for it, token in tokenizer.added_tokens_decoder.items() if token.special
        }
        if self._decode(np.concatenate([self._encode(it) for it in _PIECES])) != "".join(_PIECES):
            raise ValueError("the tokenizer changes texts; expected one that puts bytes together")
        self.stop_ids = self._find_ends()

    def prompt(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Rendered:
        """Render the beginning of a conversation.

        Raises:
            ChatTemplateError: the template has no place for one of them.
        """
        contents = {f"message{number}": it.content for number, it in enumerate(messages)}
        return self._with_header(self._fill(self._template.beginning(messages, tools), contents))

    def after(self, reply: Ids, results: Sequence[ToolResult]) -> Rendered:
        """Render what follows a sampled reply: the results of its calls, the next header.

        Args:
            reply: as sampled; its end token is added where it was cut.
            results: one of each of its calls, in order; at least one.
        """
        text = self._template.results(len(results))
        ids = self._fill(text, self._contents(reply, results))
        end = self._end_in(text)
        if end is not None and len(reply) and reply[-1] == ids[end]:
            ids = ids[end + 1 :]
        return self._with_header(ids)

    def message(self, text: str, *, role: Literal["user", "system"] = "user") -> Ids:
        """Render a whole message, to stand in front of a header."""
        return self._fill(self._template.message(role), {"text0": text})

    def hint(self, text: str) -> Ids:
        """Render a hint as a whole message, to stand in front of a header."""
        return self.message(text, role=self._config.hint_role)

    def parse(self, reply: Ids) -> tuple[str, tuple[ToolCall, ...]]:
        """Return the text of a reply without its end token, and its calls by tokens of it."""
        said, text = self._words(reply)
        return text, tuple(self._call(said, it) for it in self._written(text))

    def _words(self, reply: Ids) -> tuple[Ids, str]:
        """Return a reply without its end token, as ids and as text."""
        said = reply[:-1] if len(reply) and int(reply[-1]) in self.stop_ids else reply
        return said, self._decode(said)

    def _written(self, text: str) -> Iterator[Written]:
        """Return the calls in a text; one that is but thought of is no call."""
        start = 0
        if self._template.header.rstrip().endswith("<think>") or text.lstrip().startswith(
            "<think>"
        ):
            start = text.find("</think>") + 1
        return read_calls(text, form=self._config.calls, start=start)

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

    def _contents(self, reply: Ids, results: Sequence[ToolResult]) -> dict[str, str]:
        """Return what stands in place of the marks behind a reply."""
        written = dict(enumerate(self._written(self._words(reply)[1])))
        contents = {}
        for number, result in enumerate(results):
            call = written.get(number)
            contents[f"result{number}"] = result.text or _UNTOLD
            contents[f"name{number}"] = (call and call.name) or _UNNAMED
            contents[f"id{number}"] = (call and call.id) or _UNNAMED
        return contents

    def _find_ends(self) -> tuple[int, ...]:
        """Return what ends a message: the end of a text, the first special token behind a reply."""
        user = self._template.closing + self._template.message("user")
        ends = {self._tokenizer.eos_token_id}
        for text in (user, self._template.results(1)):
            if (place := self._end_in(text)) is not None:
                ends.add(int(self._encode(MARK.split(text)[0])[place]))
        if ends == {None}:
            raise ValueError(
                "the chat template ends no message, and the tokenizer has no end token"
            )
        return tuple(sorted(it for it in ends if it is not None))

    def _end_in(self, text: str) -> int | None:
        """Return the place of the first special token in what follows a reply."""
        ids = self._encode(MARK.split(text)[0]).tolist()
        return next((place for place, it in enumerate(ids) if it in self._special), None)

    def _with_header(self, ids: Ids) -> Rendered:
        header = self._encode(self._template.header)
        return Rendered(ids=np.concatenate([ids, header]), header=len(ids))

    def _fill(self, text: str, contents: Mapping[str, str]) -> Ids:
        """Return the tokens of a rendered template, with contents in place of its marks."""
        return np.concatenate(list(self._parts(text, contents)))

    def _parts(self, text: str, contents: Mapping[str, str]) -> Iterator[Ids]:
        around = MARK.split(text)
        yield self._encode(around[0])
        for name, following in zip(around[1::2], around[2::2], strict=True):
            # Names of files that are no UTF-8 come as halves of surrogate pairs.
            content = contents[name].encode(errors="replace").decode()
            # A text of the repository's or the model's is no special token, whatever it says.
            yield self._encode(content, split_special_tokens=True)
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
