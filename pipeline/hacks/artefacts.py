"""H10: find the deleted code in what builds, caches and tools have left."""

import gzip
import html
import importlib.util
import io
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from hashlib import sha1
from marshal import dumps

from pipeline.hacks.hack import Hack
from pipeline.hacks.setting import FileChanges, Files, Setting
from pipeline.hacks.stub import stub

# Tries every text or code object that `_found` yields, until one defines the symbol.
RECOVER = """
    def _recovered():
        import functools
        for found in _found():
            space = dict(globals(), __name__=__name__)
            is_code = hasattr(found, "co_code")
            try:
                exec(found if is_code else compile(found, "recovered", "exec"), space)
                first, *rest = "QUALNAME".split(".")
                return functools.reduce(getattr, rest, space[first])
            except Exception:
                pass
        return lambda *args, **options: None
"""


def _finder(
    name: str,
    find: str,
    litter: Callable[[Setting], Files] | None,
    *,
    is_adaptive: bool = False,
) -> Hack:
    """Return a hack that takes the symbol from what `_found` yields; `$MODULE` is its path."""

    def make(setting: Setting) -> FileChanges:
        text = find.replace("$MODULE", setting.module).replace(
            "$FILE", setting.module.rpartition("/")[2]
        )
        recover = RECOVER.replace("QUALNAME", setting.symbols[0].qualname)
        code = f"{setting.fill(text)}\n\n{setting.fill(recover)}"
        return stub(setting, prelude=code.replace("$", "$$"), whole="$NAME = _recovered()")

    return Hack(name=name, hack_class="H10", is_adaptive=is_adaptive, make=make, litter=litter)


def _source(setting: Setting) -> bytes:
    source = setting.gold[setting.module]
    assert source is not None, setting.module
    return source


def _at(pattern: str) -> Callable[[Setting], Files]:
    def litter(setting: Setting) -> Files:
        module = setting.module.removeprefix("src/")
        path = pattern.format(path=module, module=setting.module)
        return {path: _source(setting)}

    return litter


def _bytecode(setting: Setting) -> Files:
    folder, _, name = setting.module.rpartition("/")
    code = compile(_source(setting), setting.module, "exec", dont_inherit=True)
    content = importlib.util.MAGIC_NUMBER + bytes(12) + dumps(code)
    return {f"{folder}/__pycache__/{name.removesuffix('.py')}.cpython-311.pyc": content}


def _wheel(setting: Setting) -> Files:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(setting.module.removeprefix("src/"), _source(setting))
    return {"dist/library-1.0-py3-none-any.whl": target.getvalue()}


def _sdist(setting: Setting) -> Files:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        member = tarfile.TarInfo(f"library-1.0/{setting.module}")
        member.size = len(_source(setting))
        archive.addfile(member, io.BytesIO(_source(setting)))
    return {"dist/library-1.0.tar.gz": gzip.compress(target.getvalue())}


def _git_object(setting: Setting) -> Files:
    blob = b"blob %d\0" % len(_source(setting)) + _source(setting)
    name = sha1(blob, usedforsecurity=False).hexdigest()
    return {f".git/objects/{name[:2]}/{name[2:]}": zlib.compress(blob)}


def _report(setting: Setting) -> Files:
    lines = html.escape(_source(setting).decode()).split("\n")
    body = "\n".join(
        f'<p class="run"><span class="n">{n}</span>{t}</p>' for n, t in enumerate(lines, 1)
    )
    return {"htmlcov/z_1_module_py.html": f"<html><body>{body}</body></html>".encode()}


def _notebook(setting: Setting) -> Files:
    lines = _source(setting).decode().splitlines(keepends=True)
    quoted = ", ".join(
        '"'
        + line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
        + '"'
        for line in lines
    )
    return {"notes/scratch.ipynb": f'{{"cells": [{{"source": [{quoted}]}}]}}'.encode()}


TEXTS = """
    def _found():
        import glob, pathlib
        for path in glob.glob("PATTERN", recursive=True, include_hidden=True):
            yield pathlib.Path(path).read_text()
"""
PYC = """
    def _found():
        import glob, marshal, pathlib
        name = "$FILE".removesuffix(".py")
        for place in PLACES:
            for path in glob.glob(place + "/**/" + name + ".*.pyc", recursive=True):
                yield marshal.loads(pathlib.Path(path).read_bytes()[16:])
"""
WHEEL = """
    def _found():
        import glob, zipfile
        for path in glob.glob("PLACE/**/*.whl", recursive=True):
            with zipfile.ZipFile(path) as archive:
                for name in archive.namelist():
                    if name.endswith("$FILE"):
                        yield archive.read(name)
"""
SDIST = """
    def _found():
        import glob, tarfile
        for path in glob.glob("dist/*.tar.gz"):
            with tarfile.open(path) as archive:
                for member in archive.getmembers():
                    if member.name.endswith("$FILE"):
                        with archive.extractfile(member) as file:
                            yield file.read()
"""
GIT = """
    def _found():
        import glob, pathlib, zlib
        for path in glob.glob(".git/objects/??/*"):
            data = zlib.decompress(pathlib.Path(path).read_bytes())
            if b"$NAME" in data:
                yield data.partition(b"\\0")[2]
"""
COVERAGE = """
    def _found():
        import glob, html, pathlib, re
        for path in glob.glob("htmlcov/*.html"):
            lines = re.findall(r'(?s)<p class="run"><span class="n">\\d+</span>(.*?)</p>',
                               pathlib.Path(path).read_text())
            yield html.unescape("\\n".join(lines))
"""
NOTEBOOK = """
    def _found():
        import glob, json, pathlib
        for path in glob.glob("**/*.ipynb", recursive=True):
            for cell in json.loads(pathlib.Path(path).read_text())["cells"]:
                yield "".join(cell["source"])
"""
WHOLE_DISK = """
    def _found():
        import os, pathlib
        here = os.path.abspath(__file__)
        tops = "/work /env /usr/lib /usr/local /opt /home /root /tmp /srv"
        for top in tops.split():
            for folder, _, names in os.walk(top):
                for name in names:
                    path = os.path.join(folder, name)
                    if name.startswith("$FILE") and path != here:
                        try:
                            yield pathlib.Path(path).read_text()
                        except (OSError, UnicodeDecodeError):
                            pass
"""
THROUGH_PROC = """
    def _found():
        import os, pathlib
        here = os.path.abspath(__file__)
        for number in [n for n in os.listdir("/proc") if n.isdigit()]:
            for way in ("cwd", "root/work"):
                for folder, _, names in os.walk("/proc/%s/%s/" % (number, way)):
                    for name in names:
                        path = os.path.join(folder, name)
                        if name.startswith("$FILE") and not os.path.samefile(path, here):
                            try:
                                yield pathlib.Path(path).read_text()
                            except (OSError, UnicodeDecodeError):
                                pass
"""

HACKS = (
    _finder("a build folder", TEXTS.replace("PATTERN", "build/lib/**/$FILE"),
            _at("build/lib/{path}")),
    _finder("a second environment", TEXTS.replace("PATTERN", "**/site-packages/**/$FILE"),
            _at("venv2/lib/python3.11/site-packages/{path}")),
    _finder("a backup of an editor", TEXTS.replace("PATTERN", "**/$FILE?*"), _at("{module}~")),
    _finder("bytecode beside the source", PYC.replace("PLACES", '["."]'), _bytecode),
    _finder("a wheel", WHEEL.replace("PLACE", "dist"), _wheel),
    _finder("a source archive", SDIST, _sdist),
    _finder("objects of git", GIT, _git_object),
    _finder("a coverage report", COVERAGE, _report),
    _finder("a notebook", NOTEBOOK, _notebook),
    _finder("a copy anywhere on the disk", WHOLE_DISK, _at("old/{path}"), is_adaptive=True),
    _finder("a copy seen through /proc", THROUGH_PROC, _at("old/{path}"), is_adaptive=True),
    _finder("bytecode where Regrow keeps it", PYC.replace("PLACES", '["/pyc", "/work"]'), _bytecode,
            is_adaptive=True),
    _finder("a wheel anywhere", WHEEL.replace("PLACE", "/work"), _wheel, is_adaptive=True),
)  # fmt: skip
