"""What builds, caches and tools would have left of a Task's code: the gate forced open."""

import ast
import gzip
import html
import io
import json
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

from pipeline.corpus.scene import Scene

Files = dict[str, bytes]

# Compiles without running anything.
COMPILE = """\
import importlib.util, marshal, sys
code = compile(sys.stdin.buffer.read(), sys.argv[1], "exec", dont_inherit=True, optimize=0)
sys.stdout.buffer.write(importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(code))
"""
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def module_source(scene: Scene) -> bytes:
    """Return the module of the deleted symbols as it was."""
    content = scene.setting.gold[scene.module]
    assert content is not None, scene.module
    return content


def installed_path(scene: Scene) -> str:
    """Return where the module is below a folder of packages."""
    return scene.module.removeprefix("src/")


def copy_at(folder: str, scene: Scene) -> Files:
    """Return a copy of the module below a folder."""
    return {f"{folder}/{installed_path(scene)}": module_source(scene)}


def backup(scene: Scene, suffix: str) -> Files:
    """Return what an editor leaves beside the module."""
    return {f"{scene.module}{suffix}": module_source(scene)}


def bytecode(scene: Scene) -> Files:
    """Return the module's bytecode, of the Python that runs this."""
    path = PurePosixPath(scene.module)
    # In a process of its own: what marshal writes depends on the seed of hashes, and on how often
    # an object is referred to from elsewhere.
    done = subprocess.run(
        [sys.executable, "-c", COMPILE, scene.module],
        input=module_source(scene),
        env={"PYTHONHASHSEED": "0"},
        capture_output=True,
        check=True,
    )
    name = f"{path.stem}.{sys.implementation.cache_tag}.pyc"
    return {str(path.parent / "__pycache__" / name): done.stdout}


def zipped(files: Files) -> bytes:
    """Return a zip archive, the same for the same files."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for path, content in files.items():
            archive.writestr(zipfile.ZipInfo(path), content, zipfile.ZIP_DEFLATED)
    return target.getvalue()


def tarred(files: Files) -> bytes:
    """Return a gzipped tar archive, the same for the same files."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        for path, content in files.items():
            member = tarfile.TarInfo(path)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return gzip.compress(target.getvalue(), mtime=0)


def wheel(scene: Scene) -> bytes:
    """Return a wheel of the package."""
    return zipped({installed_path(scene): module_source(scene)})


def sdist(scene: Scene) -> bytes:
    """Return a source archive of the package."""
    return tarred({f"{scene.package}-1.0/{scene.module}": module_source(scene)})


def coverage_page(scene: Scene) -> bytes:
    """Return the page of a coverage report."""
    lines = html.escape(module_source(scene).decode()).split("\n")
    body = "\n".join(
        f'<p class="run"><span class="n">{number}</span><span class="t">{line}</span></p>'
        for number, line in enumerate(lines, 1)
    )
    return f"<!DOCTYPE html>\n<html><body><main>\n{body}\n</main></body></html>\n".encode()


def notebook(scene: Scene) -> bytes:
    """Return a notebook with the module in a cell."""
    source = module_source(scene).decode().splitlines(keepends=True)
    cell = {"cell_type": "code", "source": source, "outputs": []}
    return json.dumps({"cells": [cell], "nbformat": 4, "nbformat_minor": 5}).encode()


def checker_data(scene: Scene) -> bytes:
    """Return what a type checker keeps of the module: names and signatures, no bodies."""
    tree = ast.parse(module_source(scene))
    names = {
        node.name: _node(node) for node in tree.body if isinstance(node, (*FUNCTIONS, ast.ClassDef))
    }
    data = {".class": "MypyFile", "_fullname": scene.module_name, "names": names}
    return json.dumps(data, separators=(",", ":")).encode()


def _node(node: ast.stmt) -> dict[str, object]:
    if isinstance(node, ast.ClassDef):
        names = {it.name: _node(it) for it in node.body if isinstance(it, FUNCTIONS)}
        inner: dict[str, object] = {".class": "TypeInfo", "names": names}
    else:
        assert isinstance(node, FUNCTIONS)
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        kind = {
            ".class": "CallableType",
            "arg_names": [it.arg for it in arguments],
            "arg_types": [
                ast.unparse(it.annotation) if it.annotation else "Any" for it in arguments
            ],
            "ret_type": ast.unparse(node.returns) if node.returns else "Any",
        }
        inner = {".class": "FuncDef", "name": node.name, "type": kind}
    return {".class": "SymbolTableNode", "kind": "Gdef", "node": inner}


def _type(annotation: ast.expr | None) -> str:
    return ast.unparse(annotation) if annotation else "Any"


def checker_cache(scene: Scene) -> Files:
    """Return a type checker's cache of JSON files."""
    path = PurePosixPath(installed_path(scene)).with_suffix(".data.json")
    return {f".mypy_cache/3.11/{path}": checker_data(scene)}


def checker_database(scene: Scene) -> Files:
    """Return a type checker's cache in a database."""
    path = str(PurePosixPath(installed_path(scene)).with_suffix(".data.json"))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "cache.db")
        base = sqlite3.connect(file)
        base.execute("CREATE TABLE files2 (path TEXT UNIQUE NOT NULL, mtime REAL, data BLOB)")
        base.execute("INSERT INTO files2 VALUES (?, ?, ?)", (path, 1.0, checker_data(scene)))
        base.commit()
        base.close()
        return {".mypy_cache/3.11/cache.db": file.read_bytes()}
