"""Tell a model how to work: the system message of whoever tries a Task."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import jinja2

from pipeline.agent.schemas import Tool
from pipeline.task.canonical import canonical_json
from pipeline.task.suite import TREE

# Beside the package; see the README there.
TEMPLATES = Path(__file__).parents[3] / "task_templates" / "solver"


def how_to_work(tools: Sequence[str]) -> str:
    """Return the system message of a solver that may call tools of these names."""
    return _template("solver").render(tools=tuple(tools), tree=TREE).strip()


def how_to_call(tools: Sequence[Tool]) -> str:
    """Return what a model is told besides whose server knows nothing of tools."""
    described = [
        canonical_json({
            "name": it.name,
            "description": it.description,
            "parameters": it.schema,
        })
        for it in tools
    ]
    return _template("calls").render(tools=described).strip()


@cache
def _template(name: str) -> jinja2.Template:
    environment = jinja2.Environment(  # noqa: S701  a text for a model, no web page
        undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    return environment.from_string((TEMPLATES / f"{name}.md.j2").read_text("utf-8"))
