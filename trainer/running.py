"""Keep one Episode while it runs: its environment, its contexts, what became of it."""

import time
from contextlib import ExitStack, suppress
from dataclasses import replace

from pipeline.sandbox.protocol import SandboxStoppedError
from trainer.chat import Chat
from trainer.context import Context
from trainer.engine import Generated, Request
from trainer.env import Environment, Message, Outcome, PromptError, World
from trainer.records import Ending, Episode, Reply, Segment, ToolCall, ToolResult
from trainer.seeds import derive
from trainer.summary import ASK, SUMMARY_TOKENS, ask_summary, go_on_message, shorten
from trainer.template import ChatTemplateError
from trainer.tries import RolloutConfig, Try

# The run is being stopped, or cannot be as it is configured: whatever becomes of an Episode would
# be no result.
_NO_RESULT = (SandboxStoppedError, ChatTemplateError, PromptError)


class Running:
    """Owns the environment and the tokens of one Episode until it has ended."""

    def __init__(self, trying: Try, *, chat: Chat, config: RolloutConfig, seed: int) -> None:
        # What it came to; None while it runs.
        self.episode: Episode | None = None
        self._try, self._chat, self._config, self._seed = trying, chat, config, seed
        self._id = f"{trying.group}.{trying.number}"
        self._began_s = time.monotonic()
        self._stack = ExitStack()
        self._environment: Environment | None = None
        self._context: Context | None = None
        # Those before the present context.
        self._segments: list[Segment] = []
        self._num_turns = 0
        self._num_sampled = 0
        self._is_summary_due = False

    def begin(self, world: World) -> None:
        """Open the environment; one that cannot be opened ends the Episode."""
        try:
            opened = world.open(self._try.prompt, draw=self._try.group)
            self._environment = self._stack.enter_context(opened)
            self._begin_context(self._environment.messages)
        except _NO_RESULT:
            raise
        except Exception as error:
            self._fail(error)

    def request(self) -> Request:
        """Return what the engine is asked next."""
        assert self._context is not None
        part = (self._id, len(self._segments), self._num_turns)
        return Request(
            ids=self._context.ids,
            max_new_tokens=min(self._config.max_new_tokens, self._room()),
            temperature=self._config.temperature,
            stop_ids=self._chat.stop_ids,
            seed=derive(self._seed, "sample", *part),
            wants_experts=self._config.router_replay,
        )

    def take(self, generated: Generated) -> None:
        """Go on with what the policy said, to its next turn or the end."""
        try:
            self._take(generated)
        except _NO_RESULT:
            raise
        except Exception as error:
            self._fail(error)

    def abandon(self) -> None:
        """Let the environment go, whatever has become of the Episode."""
        with suppress(Exception):
            self._stack.close()

    def _begin_context(self, messages: tuple[Message, ...]) -> None:
        assert self._environment is not None
        self._context = Context(self._chat.prompt(messages, self._environment.tools))
        if self._room() <= 0:
            self._end("overlong", "")

    def _room(self) -> int:
        """Return how many tokens a message may have in this context."""
        assert self._context is not None
        return self._config.max_context_tokens - self._context.num_tokens

    def _take(self, generated: Generated) -> None:
        assert self._context is not None
        is_summary, self._is_summary_due = self._is_summary_due, False
        text, calls = self._chat.parse(generated.ids)
        if is_summary:
            calls = ()
        start = self._context.add_sampled(generated)
        self._num_turns += 1
        self._num_sampled += len(generated.ids)
        results = tuple(map(self._call, calls))
        self._context.add_reply(
            Reply(
                header=self._context.header,
                start=start,
                end=self._context.num_tokens,
                text=text,
                calls=tuple(_moved(it, start) for it in calls),
                results=results,
                stop=generated.stop,
                version=generated.version,
            )
        )
        if not calls and not is_summary:
            is_full = generated.stop == "length" and self._room() <= 0
            self._end("overlong" if is_full else "finished", text)
        elif self._num_turns >= self._config.max_turns:
            self._end("out_of_turns", text)
        elif self._is_cut():
            self._end("cut", text)
        elif is_summary:
            self._go_on_from(text)
        else:
            self._go_on(generated, results, text)

    def _call(self, call: ToolCall) -> ToolResult:
        """Carry out a call; a malformed one is told what is wrong with it."""
        assert self._environment is not None
        if call.error:
            return ToolResult(ok=False, text=f"malformed call: {call.error}")
        result = self._environment.call(call)
        return shorten(result, self._config.max_shown_chars)

    def _is_cut(self) -> bool:
        most = self._config.max_episode_tokens
        return most is not None and self._num_sampled >= most

    def _go_on(self, generated: Generated, results: tuple[ToolResult, ...], text: str) -> None:
        """Show the results and let the policy speak again, unless the context is full."""
        assert self._context is not None
        following = self._chat.after(generated.ids, results)
        # The next message must fit, and behind it what a summary takes.
        reserve = self._config.max_new_tokens
        if self._config.on_full == "summarise":
            bare = self._chat.after(generated.ids, [shorten(it, 0) for it in results])
            reserve += len(bare.ids) + len(self._chat.message(ASK)) + self._summary_tokens()
        if len(following.ids) + reserve <= self._room():
            self._context.add_rendered(following)
        elif self._config.on_full == "end":
            self._end("overlong", text)
        else:
            self._sum_up(generated, results, text)

    def _summary_tokens(self) -> int:
        return min(self._config.max_new_tokens, SUMMARY_TOKENS)

    def _sum_up(self, generated: Generated, results: tuple[ToolResult, ...], text: str) -> None:
        """Have the policy sum up, or end where a summary does not fit."""
        assert self._context is not None
        shown = ask_summary(
            self._context,
            chat=self._chat,
            reply=generated.ids,
            results=results,
            room=self._room() - self._summary_tokens(),
        )
        if shown is None:
            self._end("overlong", text)
        else:
            self._context.set_results(shown)
            self._is_summary_due = True

    def _go_on_from(self, summary: str) -> None:
        """Begin a context anew with what the policy has summed up."""
        assert self._environment is not None
        assert self._context is not None
        self._segments.append(self._context.segment())
        self._context = None
        self._begin_context((*self._environment.messages, go_on_message(summary)))

    def _end(self, ending: Ending, said: str) -> None:
        assert self._environment is not None
        outcome = self._environment.finish(said)
        self._stack.close()
        if ending == "cut":
            # Our own doing tells nothing of the policy.
            outcome = Outcome(
                reward=None, verdict=outcome.verdict, detail="over max_episode_tokens"
            )
        elif outcome.reward is None:
            ending = "infra"
        self._finish(ending, outcome)

    def _fail(self, error: Exception) -> None:
        self.abandon()
        detail = " ".join(f"{type(error).__name__}: {error}".split())
        self._finish("infra", Outcome(reward=None, verdict="invalid", detail=detail))

    def _finish(self, ending: Ending, outcome: Outcome) -> None:
        environment = self._environment
        segments = [*self._segments, *([self._context.segment()] if self._context else [])]
        self.episode = Episode(
            id=self._id,
            group=self._try.group,
            number=self._try.number,
            prompt=self._try.prompt,
            tools=environment.tools if environment else (),
            segments=tuple(it for it in segments if it.replies),
            ending=ending,
            reward=outcome.reward,
            verdict=outcome.verdict,
            detail=outcome.detail,
            patch=outcome.patch,
            monitored=outcome.monitored,
            seconds=time.monotonic() - self._began_s,
        )


def _moved(call: ToolCall, start: int) -> ToolCall:
    """Return a call by the tokens of the Segment."""
    return replace(call, start=call.start + start, end=call.end + start)
