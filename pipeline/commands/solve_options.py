"""The options of `regrow solve`, as Typer reads them."""

from pathlib import Path
from typing import Annotated

import typer

from pipeline.sandbox.choose import SandboxName
from pipeline.solve import AgentName

Run = Annotated[Path, typer.Argument(help="Run folder that `regrow generate` wrote.")]
Agent = Annotated[AgentName, typer.Option(help="Who tries: a language model, or a script.")]
Attempts = Annotated[int, typer.Option(min=1, help="Tries at each task.")]
Endpoint = Annotated[
    str | None,
    typer.Option(
        help="Of `chat`: URL of an OpenAI-compatible server, such as http://host:8000/v1; its "
        "key is taken from REGROW_KEY."
    ),
]
ModelName = Annotated[str | None, typer.Option(help="Of `chat`: name of the model.")]
MaxTokens = Annotated[
    int | None, typer.Option(min=1, help="Tokens that may be spent, prompts included.")
]
MaxUsd = Annotated[
    float | None, typer.Option(help="US dollars that may be spent, by --usd-in and --usd-out.")
]
UsdIn = Annotated[float, typer.Option(min=0, help="Of a million tokens of prompts.")]
UsdOut = Annotated[float, typer.Option(min=0, help="Of a million that it writes.")]
PerMinute = Annotated[
    float, typer.Option(min=0, help="Requests to the server a minute; 0 for no limit.")
]
Temperature = Annotated[float, typer.Option(min=0, help="Of sampling.")]
MaxNewTokens = Annotated[int, typer.Option(min=1, help="Of one message.")]
Timeout = Annotated[float, typer.Option(min=0.1, help="Seconds to wait for an answer.")]
Skill = Annotated[
    float, typer.Option(min=0, max=1, help="Of `scripted`: how often it solves a task.")
]
Style = Annotated[str, typer.Option(help="Wording of the request; all in turn by default.")]
MaxTurns = Annotated[int, typer.Option(min=1, help="Calls of tools in a try.")]
Seed = Annotated[int, typer.Option(help="Of what is drawn.")]
Jobs = Annotated[int | None, typer.Option(min=1, help="Tries at once; the cores by default.")]
BackEnd = Annotated[SandboxName, typer.Option(help="Back end that runs untrusted code.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
