"""Copies in what compilers of other languages leave: classes, libraries, source maps."""

import base64
import json
import sysconfig
import zlib
from itertools import chain
from pathlib import Path

from pipeline.bench.leak_seeds.archives import tarred, zipped
from pipeline.bench.leak_seeds.seed import Leaked, Tools, seeds_of, write

JAVA = Path(__file__).parent / "java"
# With the brace that ends it.
_INDENT = "    "


def java_fixtures() -> tuple[Leaked, ...]:
    """Return a method of each Java class that lies compiled beside this module."""
    methods = {
        "Durations": ("parseSpokenDuration", ("spokenText", "acceptPlural", "fallbackSeconds")),
        "Ledger": ("renderAccountStatement", ("accountHolder", "columnWidth", "ruleCharacter")),
        "Wildcards": ("fitsShellPattern", ("candidateName", "shellPattern", "ignoreLetterCase")),
    }
    return tuple(_fixture(name, *method) for name, method in methods.items())


def _fixture(name: str, method: str, parameters: tuple[str, ...]) -> Leaked:
    text = (JAVA / f"{name}.java").read_text()
    lines = text.splitlines(keepends=True)
    first = next(at for at, line in enumerate(lines) if f" {method}(" in line)
    last = next(at for at in range(first, len(lines)) if lines[at] == f"{_INDENT}}}\n")
    code = "".join(lines[first : last + 1])
    return Leaked(
        path=f"src/fixture/{name}.java",
        module=text.encode(),
        ablated=text.replace(code, "").encode(),
        name=method,
        code=code,
        parameters=parameters,
    )


def _class_file(leaked: Leaked) -> bytes:
    return (JAVA / leaked.file_name).with_suffix(".class").read_bytes()


def _class_name(leaked: Leaked) -> str:
    return f"fixture/{Path(leaked.file_name).stem}.class"


def _class(leaked: Leaked, root: Path, _: Tools) -> None:
    write(root, {f"work/target/classes/{_class_name(leaked)}": _class_file(leaked)})


def _jar(leaked: Leaked, root: Path, _: Tools) -> None:
    about = {"META-INF/MANIFEST.MF": b"Manifest-Version: 1.0\n"}
    jar = zipped({**about, _class_name(leaked): _class_file(leaked)})
    write(root, {"home/regrow/.m2/repository/fixture/fixture/1.0/fixture-1.0.jar": jar})


def _war(leaked: Leaked, root: Path, _: Tools) -> None:
    jar = zipped({_class_name(leaked): _class_file(leaked)})
    write(root, {"srv/deploy/app.war": zipped({"WEB-INF/lib/fixture.jar": jar})})


def _library() -> bytes:
    """Return a shared library of this interpreter."""
    folder = Path(sysconfig.get_path("stdlib"), "lib-dynload")
    return min(folder.glob("*.so"), key=lambda it: (it.stat().st_size, it.name)).read_bytes()


def _translated(leaked: Leaked, root: Path, _: Tools) -> None:
    # A compiler that quotes each line of the source above what it made of it.
    lines = leaked.module.decode().splitlines()
    quoted = chain.from_iterable(
        (f'  /* "{leaked.path}":{number}', f" * {line}  # <<<<<<", " */", f"  __t{number} = 0;")
        for number, line in enumerate(lines, 1)
    )
    write(root, {f"work/build/{Path(leaked.path).with_suffix('.c')}": "\n".join(quoted).encode()})


def _embedded(leaked: Leaked, root: Path, _: Tools) -> None:
    content = _library() + b"\0" + leaked.module + b"\0"
    write(root, {f"work/build/lib/{Path(leaked.path).with_suffix('.so')}": content})


def _frozen(leaked: Leaked, root: Path, _: Tools) -> None:
    content = _library() + zlib.compress(b"# main\n") + zlib.compress(leaked.module) + b"MEI\014"
    write(root, {"opt/app/app": content})


def _map(leaked: Leaked) -> bytes:
    content = {"version": 3, "sources": [leaked.path], "mappings": "AAAA"}
    return json.dumps({**content, "sourcesContent": [leaked.module.decode()]}).encode()


def _source_map(leaked: Leaked, root: Path, _: Tools) -> None:
    write(root, {"work/docs/_static/bundle.js.map": _map(leaked)})


def _inline_map(leaked: Leaked, root: Path, _: Tools) -> None:
    head = b"!function(){}();\n//# sourceMappingURL=data:application/json;base64,"
    write(root, {"work/node_modules/a/dist/a.min.js": head + base64.b64encode(_map(leaked))})


def _packed_map(leaked: Leaked, root: Path, _: Tools) -> None:
    text = f"export default {json.dumps(leaked.module.decode())};\n"
    files = {"package/index.mjs": text.encode(), "package/package.json": b"{}"}
    write(root, {"work/.next/cache/a.tar": tarred(files)})


JAVA_SEEDS = seeds_of("Java", "body", {"class": _class, "jar": _jar, "jar in a war": _war})
SEEDS = (
    *seeds_of("native code", "body", {
        "quoted in C": _translated, "text in a library": _embedded, "frozen program": _frozen,
    }),
    *seeds_of("JavaScript", "body", {
        "source map": _source_map, "inline map": _inline_map, "string in a package": _packed_map,
    }),
)  # fmt: skip
