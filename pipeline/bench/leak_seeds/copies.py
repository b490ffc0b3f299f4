"""Plain copies: build folders, installations, vendored code, backups, patches."""

import difflib
import textwrap
from pathlib import Path

from pipeline.bench.leak_seeds.seed import Leaked, Tools, seeds_of, write

# What a block of a swap file holds besides its own header.
_BLOCK = 4000


def _build_lib(leaked: Leaked, root: Path, _: Tools) -> None:
    write(root, {f"work/build/lib/{leaked.path}": leaked.module})


def _wrapper(leaked: Leaked, root: Path, _: Tools) -> None:
    # What a build of an extension leaves in its temporary folder.
    text = f"# This file was generated.\n\nif True:\n{_indented(leaked.code)}\n"
    write(root, {"tmp/tmpa1b2c3/build/temp.linux-x86_64/wrapper.py": text.encode()})


def _egg(leaked: Leaked, root: Path, _: Tools) -> None:
    write(root, {f"work/.eggs/{leaked.package}-0.9-py3.11.egg/{leaked.path}": leaked.module})


def _site_packages(leaked: Leaked, root: Path, _: Tools) -> None:
    write(root, {f"env/lib/python3.11/site-packages/{leaked.path}": leaked.module})


def _second_venv(leaked: Leaked, root: Path, _: Tools) -> None:
    write(root, {f"opt/agent/.venv/lib/python3.12/site-packages/{leaked.path}": leaked.module})


def _system_packages(leaked: Leaked, root: Path, _: Tools) -> None:
    write(root, {f"usr/lib/python3/dist-packages/{leaked.path}": leaked.module})


def _vendored(leaked: Leaked, root: Path, _: Tools) -> None:
    place = f"env/lib/python3.11/site-packages/pip/_vendor/{leaked.path}"
    write(root, {place: leaked.module})


def _reindented(leaked: Leaked, root: Path, _: Tools) -> None:
    # Another project's style: tabs, and other quotes.
    text = leaked.module.decode().replace("    ", "\t").replace('"', "'")
    write(root, {"env/lib/python3.11/site-packages/other/_compat.py": text.encode()})


def _excerpt(leaked: Leaked, root: Path, _: Tools) -> None:
    text = f'"""Odds and ends."""\n\n# Taken over.\n{leaked.code}\n'
    write(root, {"env/lib/python3.11/site-packages/other/utils.py": text.encode()})


def _backup(leaked: Leaked, root: Path, _: Tools) -> None:
    write(root, {f"work/{leaked.path}~": leaked.module})


def _swap(leaked: Leaked, root: Path, _: Tools) -> None:
    # An editor's swap file: blocks of 4096 bytes, lines from the end, a zero byte after each.
    lines = leaked.module.split(b"\n")
    blocks = [b"b0VIM 9.0" + bytes(4087)]
    while lines:
        taken: list[bytes] = []
        while lines and sum(map(len, taken)) + len(taken) + len(lines[0]) < _BLOCK:
            taken.append(lines.pop(0))
        if not taken:
            taken.append(lines.pop(0)[:_BLOCK])
        text = b"\0".join(reversed(taken)) + b"\0"
        blocks.append(b"ad" + bytes(4094 - len(text)) + text)
    write(root, {f"work/{Path(leaked.path).parent}/.{leaked.file_name}.swp": b"".join(blocks)})


def _history(leaked: Leaked, root: Path, _: Tools) -> None:
    write(root, {"home/regrow/.config/Code/User/History/-1f/AbCd.py": leaked.module})


def _patch(leaked: Leaked, root: Path, _: Tools) -> None:
    write(root, {"work/deletion.patch": _diff(leaked).encode()})


def _rejected(leaked: Leaked, root: Path, _: Tools) -> None:
    write(root, {f"work/{leaked.path}.rej": _diff(leaked).encode()})


def _mail(leaked: Leaked, root: Path, _: Tools) -> None:
    quoted = "".join(f"> {line}\n" for line in leaked.code.splitlines())
    text = f"Subject: [PATCH] remove {leaked.name}\n\nI wonder about this:\n\n{quoted}\nok?\n"
    write(root, {"home/regrow/Mail/inbox": text.encode()})


def _diff(leaked: Leaked) -> str:
    before, after = leaked.module.decode(), leaked.ablated.decode()
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), leaked.path, leaked.path
    )
    return "".join(lines)


def _indented(text: str) -> str:
    return textwrap.indent(text, "    ")


SEEDS = (
    *seeds_of("build folders", "body", {
        "build/lib": _build_lib, "a wrapper in a temporary folder": _wrapper, "an egg": _egg,
    }),
    *seeds_of("installed copies", "body", {
        "the environment": _site_packages,
        "a second environment": _second_venv,
        "the system's interpreter": _system_packages,
    }),
    *seeds_of("vendored copies", "body", {
        "whole": _vendored, "in another style": _reindented, "an excerpt": _excerpt,
    }),
    *seeds_of("editors", "body", {
        "backup": _backup, "swap file": _swap, "local history": _history,
    }),
    *seeds_of("patches", "body", {"diff": _patch, "rejected": _rejected, "mail": _mail}),
)  # fmt: skip
