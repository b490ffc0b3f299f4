"""Copies that tools make for themselves: bytecode, type checkers, coverage, databases, indexes."""

import json
import pickle
import shutil
import sqlite3
import zlib
from collections.abc import Sequence
from pathlib import Path

from pipeline.bench.leak_seeds.archives import zipped
from pipeline.bench.leak_seeds.seed import Leaked, Plant, Tools, seeds_of, write
from pipeline.task.suite import BYTECODE, TREE

COMPILE = "import py_compile, sys; py_compile.compile(sys.argv[1], sys.argv[2], doraise=True)"
COVER = """
import coverage, sys
path = sys.argv[1]
data = coverage.CoverageData(basename=".coverage")
data.add_lines({path: list(range(1, 1 + len(open(path).readlines())))})
data.write()
report = coverage.Coverage(data_file=".coverage", config_file=False)
report.load()
report.html_report(directory="htmlcov")
"""


def _compiled(leaked: Leaked, tools: Tools) -> bytes:
    source = tools.scratch / leaked.file_name
    source.write_bytes(leaked.module)
    made = tools.scratch / "made.pyc"
    tools.run((tools.python, "-I", "-c", COMPILE, source.name, str(made)), cwd=tools.scratch)
    return made.read_bytes()


def _pycache(leaked: Leaked, root: Path, tools: Tools) -> None:
    stem = Path(leaked.file_name).stem
    place = f"work/{Path(leaked.path).parent}/__pycache__/{stem}.cpython-311.pyc"
    write(root, {place: _compiled(leaked, tools)})


def _prefix(leaked: Leaked, root: Path, tools: Tools) -> None:
    stem = Path(leaked.path).with_suffix("")
    write(root, {f"{BYTECODE}{TREE}/{stem}.cpython-311.pyc".lstrip("/"): _compiled(leaked, tools)})


def _zip_app(leaked: Leaked, root: Path, tools: Tools) -> None:
    files = {str(Path(leaked.path).with_suffix(".pyc")): _compiled(leaked, tools)}
    write(root, {"usr/local/bin/tool": b"#!/usr/bin/env python3\n" + zipped(files)})


def _mypy(*options: str) -> Plant:
    """Return what has the code type-checked and its cache left behind."""

    def plant(leaked: Leaked, root: Path, tools: Tools) -> None:
        folder, cache = tools.scratch / "checked", root / "work" / ".mypy_cache"
        write(folder, {leaked.path: leaked.module, "quiet.ini": b"[mypy]\nignore_errors = True\n"})
        cache.mkdir(parents=True)
        fixed = ("--config-file=quiet.ini", "--follow-imports=silent", f"--cache-dir={cache}")
        tools.run((tools.python, "-m", "mypy", *fixed, *options, leaked.path), cwd=folder)
        shutil.rmtree(folder)

    return plant


def _covered(leaked: Leaked, folder: Path, tools: Tools) -> Path:
    write(folder, {leaked.file_name: leaked.module})
    tools.run((tools.python, "-I", "-c", COVER, leaked.file_name), cwd=folder)
    (folder / leaked.file_name).unlink()
    return folder / "htmlcov"


def _coverage(leaked: Leaked, root: Path, tools: Tools) -> None:
    _covered(leaked, root / "work", tools)


def _coverage_artefact(leaked: Leaked, root: Path, tools: Tools) -> None:
    pages = _covered(leaked, tools.scratch / "covered", tools)
    files = {page.name: page.read_bytes() for page in pages.iterdir() if page.is_file()}
    write(root, {"work/artefacts/coverage.zip": zipped(files)})
    shutil.rmtree(pages.parent)


def _coverage_json(leaked: Leaked, root: Path, _: Tools) -> None:
    # As services that show coverage are sent it.
    report = {"source_files": [{"name": leaked.path, "source": leaked.module.decode()}]}
    write(root, {"work/coverage.json": json.dumps(report).encode()})


def _database(path: Path, table: str, rows: Sequence[tuple[str, str | bytes]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(f"CREATE TABLE {table} (name TEXT, content)")
        connection.executemany(f"INSERT INTO {table} VALUES (?, ?)", rows)  # noqa: S608  a name of ours
    connection.close()


def _symbols_database(leaked: Leaked, root: Path, _: Tools) -> None:
    _database(root / "work/.vs/browse.db", "code", [(leaked.name, leaked.code)])


def _blobs(leaked: Leaked, root: Path, _: Tools) -> None:
    # Larger than a page of the file, so that it is cut.
    packed = [(leaked.path, zlib.compress(leaked.module))]
    _database(root / "home/regrow/.local/share/history.sqlite", "blobs", packed)


def _responses(leaked: Leaked, root: Path, _: Tools) -> None:
    answer = pickle.dumps({"url": "x", "body": leaked.module})
    _database(root / "home/regrow/.cache/http.sqlite", "responses", [("key", answer)])


def _tags(leaked: Leaked, root: Path, _: Tools) -> None:
    header = leaked.code.splitlines()
    line = next(it for it in header if f"def {leaked.name}" in it)
    entry = f'{leaked.name}\t{leaked.path}\t/^{line.rstrip()}$/;"\tf\n'
    write(root, {"work/tags": f"!_TAG_FILE_SORTED\t1\t//\n{entry}".encode()})


def _language_server(leaked: Leaked, root: Path, _: Tools) -> None:
    given = [{"label": name} for name in leaked.parameters]
    symbol = {"name": leaked.name, "kind": 12, "signature": {"parameters": given}}
    text = json.dumps({"document": leaked.path, "symbols": [symbol]})
    write(root, {"work/.cache/pyright/index.json": text.encode()})


def _completion(leaked: Leaked, root: Path, _: Tools) -> None:
    value = pickle.dumps({leaked.path: [("function", leaked.name, list(leaked.parameters))]})
    write(root, {"home/regrow/.cache/jedi/CPython-311-33/abc.pkl": value})


SEEDS = (
    *seeds_of("bytecode", "body", {
        "beside the module": _pycache, "in a folder of its own": _prefix, "in a program": _zip_app,
    }),
    *seeds_of("type checkers", "signature", {
        "database": _mypy(),
        "JSON in a database": _mypy("--no-fixed-format-cache"),
        "JSON in files": _mypy("--no-fixed-format-cache", "--no-sqlite-cache"),
    }),
    *seeds_of("coverage reports", "body", {
        "pages": _coverage, "pages in an archive": _coverage_artefact, "JSON": _coverage_json,
    }),
    *seeds_of("databases", "body", {
        "text": _symbols_database, "compressed blob": _blobs, "pickle": _responses,
    }),
    *seeds_of("indexes", "signature", {
        "tags": _tags, "language server": _language_server, "completion": _completion,
    }),
)  # fmt: skip
