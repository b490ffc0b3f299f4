"""Have every Python of an Environment that starts in a traced run join it."""

from pathlib import Path

from pipeline.sandbox.protocol import Mount
from pipeline.task.files import write_whole

# What makes the tree importable: written when the Environment was built.
PTH = "regrow.pth"
# Of its own, it does next to nothing where no traced run is: `site` has imported all that it names.
JOIN = (
    "import sys; _p = '{tools}/trace_child.py';"
    " exec(sys.modules['_frozen_importlib_external'].FileLoader('', _p).get_data(_p),"
    " {{'__file__': _p}})\n"
)


def join_mount(environment: Path, *, at: str, tools: str, folder: Path) -> Mount:
    """Return the mount that has each Python start with `inside/trace_child.py`.

    A line in a `.pth` file of the Environment works for a child with no variable of ours, and
    shows in no variable, no file of the tree and no folder of `sys.path`.

    Args:
        environment: its folder.
        at: where the sandbox has it.
        tools: where the sandbox has the scripts.
        folder: where the file can stay, for all runs in this Environment.
    """
    original = next(environment.glob(f"lib/python3*/site-packages/{PTH}"))
    text = original.read_bytes() + JOIN.format(tools=tools).encode()
    traced = folder / PTH
    if not traced.exists() or traced.read_bytes() != text:
        write_whole(traced, text)
    return Mount(source=traced, target=f"{at}/{original.relative_to(environment)}")
