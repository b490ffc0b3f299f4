"""Ask a judge model for its answer, as OpenAI-compatible servers take it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.agent.chat.server import Server, ServerError, complete

KEY_VARIABLE = "REGROW_JUDGE_KEY"
MAX_SHOWN_CHARS = 200

Message = Mapping[str, str]


class JudgeError(RuntimeError):
    """The judge gave no answer that can be used: nothing was learnt about any attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the model wrote."""

    text: str
    num_prompt_tokens: int
    num_completion_tokens: int


def ask(messages: Sequence[Message], *, server: Server) -> Reply:
    """Return the model's answer at temperature 0.

    Raises:
        JudgeError: the server refused, or failed each time.
    """
    try:
        body: dict[str, object] = {"messages": list(messages), "temperature": 0}
        return complete(server, body, read=_reply)
    except ServerError as error:
        raise JudgeError(f"the judge gave no answer: {error}") from error


def _reply(answer: dict[str, object]) -> Reply:
    """Read an answer.

    Raises:
        ValueError: it is not what such servers send.
    """
    match answer:
        case {"choices": [{"message": {"content": str(text)}}, *_]}:
            usage = answer.get("usage")
            counts = usage if isinstance(usage, dict) else {}
            return Reply(
                text=text,
                num_prompt_tokens=int(counts.get("prompt_tokens", 0)),
                num_completion_tokens=int(counts.get("completion_tokens", 0)),
            )
    raise ValueError(f"an answer without a message: {str(answer)[:MAX_SHOWN_CHARS]!r}")
