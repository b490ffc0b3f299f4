"""Let a language model decide: its messages become calls, and outputs its next messages."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pipeline.agent.chat.budget import Budget, Usage
from pipeline.agent.chat.prompt import how_to_call
from pipeline.agent.chat.replies import CHARS_PER_TOKEN, Reply, Wanted, read_reply
from pipeline.agent.chat.server import OversizedError, RefusedError, Server, complete
from pipeline.agent.loop import Done
from pipeline.agent.schemas import Tool
from pipeline.agent.tools import Answer, Call
from pipeline.task.canonical import canonical_json

# What a call is recorded as that cannot be read; no workbench has such a tool.
UNREADABLE = "unreadable_call"
LEFT_OUT = "(left out: the conversation has grown too long)"
NUDGE = "Call a tool, or say in one sentence what you have done if the work is finished."
# Messages in a row that neither call anything nor say anything.
MAX_EMPTY = 2

Message = dict[str, object]


@dataclass(slots=True, kw_only=True)
class Model:
    """A model of a run, with what all that talk to it share.

    Example: `Model(server=Server(url="http://localhost:8000/v1", model="coder-1"))`.
    """

    server: Server
    budget: Budget = field(default_factory=Budget)
    temperature: float = 1.0
    # Of one message.
    max_new_tokens: int = 4096
    # Of a conversation; older outputs of tools are left out beyond.
    max_context_tokens: int = 120_000
    # Set once the server has refused tools: calls then stand in the text.
    has_tools: bool = True


class ChatPolicy:
    """Owns a conversation with a model about one piece of work."""

    name = "chat"

    def __init__(self, model: Model, *, system: str, request: str, tools: Sequence[Tool]) -> None:
        self.usage = Usage()
        self._model, self._tools = model, tuple(tools)
        self._system = system
        self._messages: list[Message] = [{"role": "user", "content": request}]
        # Calls of the last message that are not carried out yet, and of those that are the answers.
        self._waiting: deque[Wanted] = deque()
        self._asked: Wanted | None = None
        self._thought = ""
        self._num_empty = 0

    def act(self, answer: Answer | None) -> Call | Done:
        """Tell the model what came back, and return what it wants next.

        Raises:
            ServerError: its server failed.
            BudgetError: nothing more may be spent.
        """
        if answer is not None and self._asked is not None:
            self._tell(self._asked, answer)
        while not self._waiting:
            try:
                reply = self._next()
            except OversizedError as error:
                return Done(reason="oversized", detail=str(error))
            if reply is None:
                return Done(reason="overlong", detail="its context is full")
            self._messages.append(dict(reply.message))
            self._waiting.extend(reply.calls)
            self._thought = reply.text
            if not reply.calls and (reply.text or self._num_empty >= MAX_EMPTY):
                return Done(reason="", detail=reply.text)
            self._num_empty = 0 if reply.calls else self._num_empty + 1
            if not reply.calls:
                self._messages.append({"role": "user", "content": NUDGE})
        self._asked = self._waiting.popleft()
        return self._call(self._asked)

    def _call(self, wanted: Wanted) -> Call:
        thought, self._thought = self._thought, ""
        if wanted.arguments is None or wanted.error:
            arguments: dict[str, object] = {"tool": wanted.tool, "error": wanted.error}
            return Call(thought=thought, tool=UNREADABLE, arguments=arguments)
        return Call(thought=thought, tool=wanted.tool, arguments=wanted.arguments)

    def _tell(self, wanted: Wanted, answer: Answer) -> None:
        # Bytes of a file that are no UTF-8 come as halves of surrogates, which no server takes.
        text = answer.output.encode("utf-8", "backslashreplace").decode()
        if wanted.error:
            text = f"the call of {wanted.tool or 'a tool'} cannot be read: {wanted.error}"
        if wanted.id:
            self._messages.append({"role": "tool", "tool_call_id": wanted.id, "content": text})
        else:
            shown = f"<tool_response>\n{text}\n</tool_response>"
            self._messages.append({"role": "user", "content": shown})

    def _next(self) -> Reply | None:
        """Ask for the next message; cut the conversation where the server finds it too long.

        None when there is nothing left to cut.
        """
        _shorten(self._messages, max_chars=self._model.max_context_tokens * CHARS_PER_TOKEN)
        while True:
            try:
                return self._ask()
            except RefusedError as error:
                if self._model.has_tools and _is_about_tools(error.said):
                    self._model.has_tools = False
                    continue
                if not _is_about_length(error.said):
                    raise
                size = _chars(self._messages)
                _shorten(self._messages, max_chars=size // 2)
                if _chars(self._messages) == size:
                    return None

    def _ask(self) -> Reply:
        model = self._model
        messages = self._sent()
        body: dict[str, object] = {
            "messages": messages,
            "temperature": model.temperature,
            "max_tokens": model.max_new_tokens,
        }
        if model.has_tools:
            body["tools"] = [_described(it) for it in self._tools]
        size = _chars(messages)
        names = {it.name for it in self._tools}
        most = Usage(
            num_prompt_tokens=_chars([body]) // CHARS_PER_TOKEN,
            num_completion_tokens=model.max_new_tokens,
        )
        with model.budget.holding(most) as book:
            reply = complete(
                model.server,
                body,
                read=lambda answer: read_reply(answer, tools=names, num_prompt_chars=size),
            )
            book(reply.usage)
        self.usage = self.usage + reply.usage
        return reply

    def _sent(self) -> list[Message]:
        system = self._system
        if self._model.has_tools:
            return [{"role": "system", "content": system}, *self._messages]
        system = f"{system}\n\n{how_to_call(self._tools)}"
        return [{"role": "system", "content": system}, *map(_plain, self._messages)]


def _described(tool: Tool) -> dict[str, object]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    return {"type": "function", "function": function}


def _plain(message: Message) -> Message:
    """Return a message as a server takes it that knows nothing of tools."""
    match message:
        case {"role": "tool", "content": text}:
            return {"role": "user", "content": f"<tool_response>\n{text}\n</tool_response>"}
        case {"tool_calls": list(calls), "content": text}:
            written = "".join(f"\n<tool_call>\n{_as_written(it)}\n</tool_call>" for it in calls)
            return {"role": "assistant", "content": f"{text}{written}"}
    return message


def _as_written(call: Mapping[str, object]) -> str:
    function = call["function"]
    assert isinstance(function, dict)
    return f'{{"name": "{function["name"]}", "arguments": {function["arguments"]}}}'


def _is_about_tools(said: str) -> bool:
    return "tool" in said.lower() or "function" in said.lower()


def _is_about_length(said: str) -> bool:
    return "context" in said.lower() or "too long" in said.lower()


def _chars(messages: Sequence[Message]) -> int:
    return sum(len(canonical_json(it)) for it in messages)


def _shorten(messages: list[Message], *, max_chars: int) -> None:
    """Leave out the outputs of tools, the oldest first and the last one never, until it fits."""
    size = _chars(messages)
    for number, message in enumerate(messages[:-1]):
        if size <= max_chars:
            return
        text = message["content"]
        if _is_output(message) and isinstance(text, str) and len(text) > len(LEFT_OUT):
            messages[number] = {**message, "content": LEFT_OUT}
            size -= len(text) - len(LEFT_OUT)


def _is_output(message: Message) -> bool:
    text = message["content"]
    return message["role"] == "tool" or (
        isinstance(text, str) and text.startswith("<tool_response>")
    )
