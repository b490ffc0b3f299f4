"""What a repository says is shown as it is, and never obeyed."""

import pytest
from rich.console import Console

from pipeline.commands.tables import table

# Ids that mean something to a terminal or to Rich, and how they are shown.
SHOWN = {
    "test_a[red]": "test_a[red]",
    "test_a[/tmp]": "test_a[/tmp]",
    "test_a[[bold]x]": "test_a[[bold]x]",
    "a.py::x::b": "a.py::x::b",
    "a\x1b[31mb\x07\x9b2J\u202ec": "a[31mb2Jc",
    "two\nlines\r\tc": "two lines  c",
    "half \ud800": "half ",
}


@pytest.mark.parametrize(("text", "shown"), SHOWN.items(), ids=map(ascii, SHOWN))
def test_titles_and_cells_are_shown_as_they_are_on_one_line(text: str, shown: str):
    console = Console(width=80, color_system="truecolor", force_terminal=True, highlight=False)
    with console.capture() as captured:
        console.print(table(text, ("test", "symptom"), [(text, "x"), ("y", text)]))
    lines = captured.get().replace("\x1b[3m", "").replace("\x1b[0m", "").splitlines()
    assert lines[0].rstrip() == shown.rstrip()
    assert lines[2].startswith(f"{shown} ")
    assert lines[3].split(maxsplit=1) == ["y", shown.ljust(len(lines[3].split(maxsplit=1)[1]))]
    assert len(lines) == 4
    assert "\x1b" not in "".join(lines[2:])
