"""Errands for a real model: which of five listed tools to call, as a chat with examples."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from transformers import PreTrainedTokenizerBase

from trainer.seeds import generator

# What a user wants, by the tool that does it.
POOL = {
    "get_weather": "tell me the weather in Rome",
    "send_email": "write to Anna that I am late",
    "read_file": "show me what is in notes.txt",
    "search_web": "find pages about owls",
    "book_flight": "get me a seat to Oslo on Monday",
    "set_alarm": "wake me at seven",
    "play_music": "put on some jazz",
    "convert_currency": "how many euros are 40 dollars",
    "translate_text": "say good morning in Czech",
    "create_invoice": "bill Mr. Brown for two hours",
    "list_meetings": "what is in my calendar today",
    "order_pizza": "get a margherita to the office",
    "check_stock": "how are the shares of Acme",
    "resize_image": "make photo.png half as large",
    "run_query": "count the rows of the orders table",
    "track_parcel": "where is parcel 4711",
    "rent_car": "I need a van on Friday",
    "scan_ports": "which ports does 10.0.0.5 have open",
    "open_ticket": "report that the printer is broken",
    "reserve_table": "dinner for four at Luigi's",
    "count_words": "how long is this essay",
    "plan_route": "how do I drive to Bonn",
    "dim_lights": "make the living room darker",
    "buy_ticket": "two seats for the opera",
    "fetch_recipe": "how do I bake bread",
    "lock_door": "close the front door",
    "rename_folder": "call the folder drafts old",
    "sum_numbers": "add 3, 9 and 14",
    "plot_chart": "draw the sales of this year",
    "find_contact": "what is the number of Bob",
}
NUM_LISTED = 5
NUM_GONE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """A chat that ends where the policy is to name a tool."""

    # The tools that there are.
    listed: tuple[str, ...]
    # Tokens up to the reply, as they are, and with a hint at the end of what the user says.
    ids: tuple[int, ...]
    hinted_ids: tuple[int, ...]
    other_ids: tuple[int, ...]


def errand(number: int, *, tokenizer: PreTrainedTokenizerBase) -> Errand:
    """Return an errand; the same number gives the same one.

    All but the first of the examples call tools that are no longer there, and the model tends to
    call these again.
    """
    drawn = _shuffled(list(POOL), number, "pool")
    listed, gone, others = (
        drawn[start : start + NUM_LISTED] for start in (0, NUM_LISTED, 2 * NUM_LISTED)
    )
    wanted, still_there, *_ = _shuffled(listed, number, "wanted")
    messages = [{"role": "system", "content": _system(listed)}]
    for tool in (still_there, *gone[:NUM_GONE]):
        messages += [
            {"role": "user", "content": f"Please {POOL[tool]}."},
            {"role": "assistant", "content": f"CALL {tool}"},
        ]

    def tokens(hint: str) -> tuple[int, ...]:
        asked = {"role": "user", "content": f"Please {POOL[wanted]}.{hint}"}
        text = tokenizer.apply_chat_template(
            [*messages, asked], tokenize=False, add_generation_prompt=True
        )
        return tuple(tokenizer(text, add_special_tokens=False)["input_ids"])

    return Errand(
        listed=tuple(listed),
        ids=tokens(""),
        hinted_ids=tokens(_hint(listed)),
        other_ids=tokens(_hint(others)),
    )


def reply_ids(tool: str, *, tokenizer: PreTrainedTokenizerBase) -> list[int]:
    """Return the tokens of a reply that calls a tool, the end of the message included."""
    ids: list[int] = tokenizer(f"CALL {tool}<|im_end|>", add_special_tokens=False)["input_ids"]
    return ids


def _shuffled(names: Sequence[str], number: int, what: str) -> list[str]:
    order = torch.randperm(len(names), generator=generator(number, what))
    return [names[place] for place in order.tolist()]


def _system(listed: Sequence[str]) -> str:
    return (
        f"You call tools. The tools are: {', '.join(listed)}. "
        "Answer with one line: CALL and the name of a tool."
    )


def _hint(listed: Sequence[str]) -> str:
    return f"\nReminder: the available tools are {', '.join(listed)}."
