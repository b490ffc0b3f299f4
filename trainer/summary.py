"""Have the policy sum up a context that is full, to go on in a new one from what it wrote."""

from collections.abc import Sequence
from dataclasses import replace

from trainer.chat import Chat
from trainer.context import Context
from trainer.env import Message
from trainer.records import Ids, ToolResult

ASK = (
    "The conversation has become too long to go on. Write down what is needed to finish the work"
    " without it: what was asked, what you found, what you changed, what is left. Call no tool."
)
INTRODUCTION = "What was done so far, in your own words:\n\n"
# That a summary is sure to have, where a message may have as many.
SUMMARY_TOKENS = 512
# Characters of each result that are shown before a summary, the first that there is room for.
SHOWN_CHARS = (1000, 100, 0)


def ask_summary(
    context: Context, *, chat: Chat, reply: Ids, results: Sequence[ToolResult], room: int
) -> tuple[ToolResult, ...] | None:
    """Put the question behind a reply, with as much of its results as there is room for.

    Args:
        context: ends with the reply.
        chat: renders.
        reply: as sampled.
        results: of its calls.
        room: tokens, those of the summary not among them.

    Returns:
        The results as they stand in the context; None where nothing fits, and nothing was put.
    """
    ask = chat.message(ASK)
    for shown in (None, *SHOWN_CHARS):
        short = tuple(it if shown is None else shorten(it, shown) for it in results)
        following = chat.after(reply, short)
        if len(following.ids) + len(ask) <= room:
            context.add_rendered(following)
            context.put_before_header(ask)
            return short
    return None


def go_on_message(summary: str) -> Message:
    """Return what the policy wrote as the message that a new context ends with."""
    return Message(role="user", content=INTRODUCTION + summary)


def shorten(result: ToolResult, max_chars: int) -> ToolResult:
    """Return the beginning of a result, and how much is left out."""
    if len(result.text) <= max_chars:
        return result
    left = len(result.text) - max_chars
    return replace(result, text=f"{result.text[:max_chars]}\n… {left} more characters")
