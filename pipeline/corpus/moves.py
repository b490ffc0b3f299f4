"""What every scripted agent does before and after the deed: look, write, check."""

import shlex
from collections.abc import Iterator

from pipeline.agent.edits import edits_between
from pipeline.agent.tools import Call
from pipeline.corpus.scene import Scene, Step
from pipeline.hacks.control import Control
from pipeline.hacks.honest import CONTROLS
from pipeline.hacks.setting import FileChanges

# Longer files are shown in part.
SHOWN_LINES = 120
NUM_CHECKED = 8
# Controls that write the feature in other words.
ANEW = ("written anew", "with other names of variables", "without docstrings")


def run(command: str, thought: str = "", *, is_deed: bool = False) -> Step:
    """Return a step that runs a shell command."""
    return use("run_command", thought, is_deed=is_deed, command=command)


def use(tool: str, thought: str = "", *, is_deed: bool = False, **arguments: object) -> Step:
    """Return a step that uses a tool."""
    return Step(call=Call(thought=thought, tool=tool, arguments=arguments), is_deed=is_deed)


def look(scene: Scene) -> Iterator[Step]:
    """Yield the first steps at any Task, each in one of its ways: tree, uses, tests, module."""
    draw, name, module = scene.draw, scene.name, scene.module
    test = scene.setting.test_files[0]
    words = shlex.quote(name)
    yield draw.choice([
        use("list_files", "What is here?"),
        run("ls -1", "What is here?"),
        run("find . -name '*.py' -not -path './.*' | sort | head -60", "Which modules are there?"),
    ])
    yield draw.choice([
        use("search", f"Who uses {name}?", text=name),
        run(f"grep -rn {words} --include='*.py' . | sort | head -40", f"Where is {name} used?"),
        run(f"grep -rln {words} . --include='*.py' | sort", f"Which files name {name}?"),
    ])
    reads = [
        draw.choice([
            use("read_file", "The tests say what is expected.", path=test, num_lines=SHOWN_LINES),
            run(f"head -{SHOWN_LINES} {test}", "What do the tests expect?"),
            run(f"grep -n -A12 {words} {test} | head -80", "How do the tests call it?"),
        ])
    ]
    if module in scene.setting.files:
        reads.append(
            draw.choice([
                use("read_file", "The module as it is.", path=module, num_lines=SHOWN_LINES),
                run(f"sed -n 1,{SHOWN_LINES}p {module}", "What is left of the module?"),
                run(f"grep -n '^def \\|^class ' {module}", "What does the module define?"),
            ])
        )
    draw.shuffle(reads)
    yield from reads


def solve(scene: Scene, *, is_anew: bool = False) -> Iterator[Step]:
    """Yield the steps that bring the feature back: as it was, or in other words."""
    changes = scene.setting.gold
    if is_anew:
        changes = control_named(scene.draw.choice(ANEW)).make(scene.setting) or changes
    yield from write(scene, changes)


def control_named(name: str) -> Control:
    """Return an honest control of the hacks' corpus."""
    return next(it for it in CONTROLS if it.name == name)


def write(
    scene: Scene, changes: FileChanges, thought: str = "", *, is_deed: bool = False
) -> Iterator[Step]:
    """Yield the steps that make changes to the solve tree."""
    said = thought or "Now the code."
    for path, content in sorted(changes.items()):
        before = scene.setting.files.get(path)
        if content is None:
            yield use("delete_files", said, is_deed=is_deed, paths=[path])
        elif before is None:
            text = content.decode("utf-8", "surrogateescape")
            yield _write_whole(scene, path, text, said, is_deed=is_deed)
        else:
            old, new = (it.decode("utf-8", "surrogateescape") for it in (before, content))
            edits = [{"path": path, "old": a, "new": b} for a, b in edits_between(old, new)]
            if edits:
                yield use("edit_files", said, is_deed=is_deed, edits=edits)


def _write_whole(scene: Scene, path: str, text: str, said: str, *, is_deed: bool) -> Step:
    is_plain = text.isascii() and text.endswith("\n") and "EOF" not in text and "\r" not in text
    if is_plain and "/" not in path and scene.draw.random() < 1 / 2:
        return run(f"cat > {shlex.quote(path)} <<'EOF'\n{text}EOF", said, is_deed=is_deed)
    return use("write_file", said, is_deed=is_deed, path=path, content=text)


def python(code: str) -> str:
    """Return a shell command that runs code of several lines."""
    return f"python - <<'EOF'\n{code.strip()}\nEOF"


def check(scene: Scene) -> Iterator[Step]:
    """Yield the last steps: does it import, do the tests pass?"""
    if scene.draw.random() < 1 / 2:
        yield use("import_modules", "Does it import?", modules=[scene.module_name])
    ids = list(scene.setting.tests[:NUM_CHECKED])
    yield use("run_tests", "Do the tests that I was shown pass?", ids=ids)
