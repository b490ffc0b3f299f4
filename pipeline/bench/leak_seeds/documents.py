"""Copies that people read: built documents, stubs, tests, notebooks, logs, requests."""

import json
import pickle
import textwrap
from pathlib import Path

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from pipeline.bench.leak_seeds.seed import Leaked, Tools, seeds_of, write


def _page(leaked: Leaked) -> bytes:
    """Return the page that documentation builders make of a module's source."""
    body = highlight(leaked.module.decode(), PythonLexer(), HtmlFormatter())
    return f"<!DOCTYPE html><html><body><h1>Source code</h1>{body}</body></html>".encode()


def _built(leaked: Leaked, root: Path, _: Tools) -> None:
    page = Path(leaked.path).with_suffix(".html")
    write(root, {f"work/docs/_build/html/_modules/{page}": _page(leaked)})


def _doctree(leaked: Leaked, root: Path, _: Tools) -> None:
    tree = {"rawsource": "", "children": [("literal_block", leaked.module.decode())]}
    write(root, {"work/docs/_build/doctrees/api.doctree": pickle.dumps(tree)})


def _search_index(leaked: Leaked, root: Path, _: Tools) -> None:
    index = {"docs": [{"location": "api/", "title": leaked.name, "text": leaked.code}]}
    write(root, {"work/site/search/search_index.json": json.dumps(index).encode()})


def _header(leaked: Leaked) -> str:
    return f"def {leaked.name}({', '.join(leaked.parameters)}): ..."


def _typeshed(leaked: Leaked, root: Path, _: Tools) -> None:
    place = f"env/lib/python3.11/site-packages/{leaked.package}-stubs/{leaked.file_name}i"
    write(root, {place: f"from typing import Any\n\n{_header(leaked)}\n".encode()})


def _checker_stub(leaked: Leaked, root: Path, _: Tools) -> None:
    given = ",\n".join(f"    {name}: Any = ..." for name in leaked.parameters)
    text = f"from typing import Any\n\ndef {leaked.name}(\n{given},\n) -> Any: ...\n"
    place = f"opt/agent/lib/jedi/typeshed/stubs/{leaked.package}/{leaked.file_name}i"
    write(root, {place: text.encode()})


def _completions(leaked: Leaked, root: Path, _: Tools) -> None:
    text = f"{leaked.package}.{leaked.name}({', '.join(leaked.parameters)})\n"
    write(root, {"home/regrow/.config/geany/python.api": text.encode()})


def _oracle(leaked: Leaked, root: Path, _: Tools) -> None:
    text = f"import pytest\n\n\n# The reference.\n{leaked.code}\n\n\ndef test_same():\n    pass\n"
    write(root, {"work/tests/test_reference.py": text.encode()})


def _golden(leaked: Leaked, root: Path, _: Tools) -> None:
    write(root, {"work/tests/golden/inspect.txt": leaked.code.encode()})


def _cassette(leaked: Leaked, root: Path, _: Tools) -> None:
    answer = {"request": {"uri": "x"}, "response": {"body": {"string": leaked.module.decode()}}}
    write(root, {"work/tests/cassettes/raw.json": json.dumps({"interactions": [answer]}).encode()})


def _notebook(leaked: Leaked, root: Path, _: Tools) -> None:
    lines = leaked.code.splitlines(keepends=True)
    cell = {"cell_type": "code", "source": lines, "outputs": [], "metadata": {}}
    text = json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    write(root, {"work/examples/tour.ipynb": text.encode()})


def _output(leaked: Leaked, root: Path, _: Tools) -> None:
    shown = {"output_type": "stream", "name": "stdout", "text": [leaked.code]}
    cell = {"cell_type": "code", "source": ["!cat x"], "outputs": [shown], "metadata": {}}
    text = json.dumps({"cells": [cell]}, ensure_ascii=True, indent=1)
    write(root, {"work/.ipynb_checkpoints/a-checkpoint.ipynb": text.encode()})


def _exported(leaked: Leaked, root: Path, _: Tools) -> None:
    text = f"# Tour\n\n```python\n{leaked.code}\n```\n"
    write(root, {"work/examples/tour.md": text.encode()})


def _run_log(leaked: Leaked, root: Path, _: Tools) -> None:
    lines = (f"2024-05-01T00:00:00.000Z {line}\n" for line in leaked.code.splitlines())
    write(root, {"work/ci/logs/1_build.txt": "".join(lines).encode()})


def _traceback(leaked: Leaked, root: Path, _: Tools) -> None:
    lines = (f"E   {number:5}  {line}\n" for number, line in enumerate(leaked.code.splitlines(), 1))
    write(root, {"tmp/pytest-of-a/failures.log": "".join(lines).encode()})


def _wide(leaked: Leaked, root: Path, _: Tools) -> None:
    write(root, {"tmp/console.log": leaked.module.decode().encode("utf-16")})


def _quoted(leaked: Leaked, root: Path, _: Tools) -> None:
    text = f"Bring it back. It was:\n\n{textwrap.indent(leaked.code, '    ')}\n"
    write(root, {"instruction/specification.md": text.encode()})


def _transcript(leaked: Leaked, root: Path, _: Tools) -> None:
    call = {"tool": "edit_file", "arguments": json.dumps({"old": leaked.code, "new": ""})}
    write(root, {"run/agent/transcript.jsonl": (json.dumps(call) + "\n").encode()})


def _clipboard(leaked: Leaked, root: Path, _: Tools) -> None:
    write(root, {"home/regrow/.local/share/klipper/history": pickle.dumps([leaked.code])})


SEEDS = (
    *seeds_of("built documents", "body", {
        "source page": _built, "pickled tree": _doctree, "search index": _search_index,
    }),
    *seeds_of("stubs", "signature", {
        "stub package": _typeshed, "in a tool": _checker_stub, "completion list": _completions,
    }),
    *seeds_of("tests", "body", {
        "reference": _oracle, "golden file": _golden, "recorded answer": _cassette,
    }),
    *seeds_of("notebooks", "body", {
        "cell": _notebook, "output": _output, "exported": _exported,
    }),
    *seeds_of("logs", "body", {
        "of a build": _run_log, "of a failure": _traceback, "in UTF-16": _wide,
    }),
    *seeds_of("the factory's own", "body", {
        "request": _quoted, "transcript": _transcript, "clipboard": _clipboard,
    }),
)  # fmt: skip
