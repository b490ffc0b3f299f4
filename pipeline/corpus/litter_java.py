"""A Java class whose constant pool names what a Python module defined: a port of it, compiled."""

import ast
import struct
from collections.abc import Iterable

from pipeline.corpus.litter import FUNCTIONS, module_source, zipped
from pipeline.corpus.scene import Scene

MAGIC, VERSION = 0xCAFEBABE, 52
UTF8, CLASS, STRING = 1, 7, 8
MAX_TEXT_BYTES = 60_000


def class_file(scene: Scene) -> bytes:
    """Return a class with the names, parameters and texts of the deleted symbols in its pool."""
    return _class(f"port/{scene.package.title()}", _texts(scene))


def jar(scene: Scene) -> bytes:
    """Return an archive with the class."""
    name = f"port/{scene.package.title()}.class"
    return zipped({"META-INF/MANIFEST.MF": b"Manifest-Version: 1.0\n", name: class_file(scene)})


def _texts(scene: Scene) -> list[str]:
    """Return what a compiler would put into the pool for the deleted symbols."""
    wanted = {it.name for it in scene.setting.symbols}
    found: list[str] = []
    for node in ast.walk(ast.parse(module_source(scene))):
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and node.name in wanted:
            found += [node.name, *(it.arg for it in ast.walk(node) if isinstance(it, ast.arg))]
            constants = (it.value for it in ast.walk(node) if isinstance(it, ast.Constant))
            found += [it for it in constants if isinstance(it, str)]
    return list(dict.fromkeys(text for text in found if len(text.encode()) < MAX_TEXT_BYTES))


def _class(name: str, texts: Iterable[str]) -> bytes:
    """Return a class file without fields and methods; its pool holds the texts as constants."""
    pool = [_utf8(name), struct.pack(">BH", CLASS, 1), _utf8("java/lang/Object"),
            struct.pack(">BH", CLASS, 3)]  # fmt: skip
    for text in texts:
        pool += [_utf8(text), struct.pack(">BH", STRING, len(pool) + 1)]
    head = struct.pack(">IHHH", MAGIC, 0, VERSION, len(pool) + 1)
    public_super = 0x21
    return head + b"".join(pool) + struct.pack(">HHHHHHH", public_super, 2, 4, 0, 0, 0, 0)


def _utf8(text: str) -> bytes:
    data = text.encode("utf-8", "surrogatepass")
    return struct.pack(">BH", UTF8, len(data)) + data
