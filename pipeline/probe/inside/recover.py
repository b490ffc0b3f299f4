"""Find in everything that can be read what mentions some names; print it, opened as far as it goes.

Standard input holds `names`, each a list of words, and `places` as JSON. Each piece that mentions a
name is printed after a line that begins with a record separator: how it was opened. Deliberately
simple, and sharing no code with the scanner that certifies a tree: the two should agree.
"""

import bz2
import glob
import gzip
import html
import importlib.util
import io
import json
import lzma
import marshal
import os
import re
import sqlite3
import stat
import subprocess
import sys
import tarfile
import tempfile
import time
import types
import zipfile
import zlib

MAX_FILE_BYTES = 64 * 2**20
MAX_PIECE_BYTES = 64 * 2**20
MAX_DEPTH = 4
# Printed around a name: lines of a text, bytes of anything else.
LINES_BEFORE, LINES_AFTER = 10, 80
BYTES_AROUND = 8192
MAX_PRINTED_BYTES = 24 * 2**20
MAX_S = 240
SKIPPED = ("/proc", "/sys", "/dev")
# The last words of the names that are asked for.
LASTS = set()
# Of what this script writes itself.
OWN = "recovered"


def files_below(place):
    """Yield the paths of files."""
    if os.path.isfile(place):
        yield place
    for folder, folders, names in os.walk(place):
        if folder.startswith(SKIPPED):
            folders[:] = []
            continue
        for name in names:
            if not name.startswith(OWN):
                yield os.path.join(folder, name)


def read_regular(path):
    """Return the content of a file that is no link and not huge; None of any other."""
    try:
        status = os.lstat(path)
        if stat.S_ISREG(status.st_mode) and status.st_size <= MAX_FILE_BYTES:
            with open(path, "rb") as file:
                return file.read()
    except OSError:
        pass
    return None


def pieces_of(data, how, names, depth=0):
    """Yield (how it was opened, bytes) of all that names something, in data and packed in it."""
    is_named = any(all(word in data for word in words) for words in names)
    if is_named and not is_bytecode(data):
        yield how, data
    if depth < MAX_DEPTH:
        for way, opened in opened_by_kind(data, PACKED + PLAIN if is_named else PACKED):
            yield from pieces_of(opened, how + " > " + way, names, depth + 1)


def opened_by_kind(data, ways):
    """Yield what the first way that fits makes of data."""
    for is_fit, open_it in ways:
        if is_fit(data):
            try:
                yield from open_it(data)
            except Exception as error:
                yield "broken", str(error).encode()
            return


def zip_members(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for member in archive.infolist():
            if member.file_size <= MAX_PIECE_BYTES:
                yield "zip " + member.filename, archive.read(member)


def tar_members(data):
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for member in archive:
            if member.isfile() and member.size <= MAX_PIECE_BYTES:
                yield "tar " + member.name, archive.extractfile(member).read()


def inflated(way, open_it):
    def open_whole(data):
        with open_it(io.BytesIO(data)) as file:
            yield way, file.read(MAX_PIECE_BYTES)

    return open_whole


def zlib_stream(data):
    yield "zlib", zlib.decompressobj().decompress(data, MAX_PIECE_BYTES)


def streams_of_a_pack(data):
    """Yield the streams that start anywhere: whole objects, and what deltas insert."""
    at = 0
    while found := re.compile(rb"\x78[\x01\x9c\xda]").search(data, at):
        at, stream = found.end(), zlib.decompressobj()
        try:
            yield "stream at %d" % found.start(), stream.decompress(data[found.start() :])
            at = len(data) - len(stream.unused_data) if stream.eof else at
        except zlib.error:
            pass


def tables_of(data):
    with tempfile.NamedTemporaryFile(prefix=OWN) as file:
        file.write(data)
        file.flush()
        base = sqlite3.connect("file:%s?mode=ro&immutable=1" % file.name, uri=True)
        text = "\n".join(base.iterdump())
    yield "tables", text.encode("utf-8", "replace")
    for number, digits in enumerate(re.findall(r"X'([0-9A-F]+)'", text)):
        yield "blob %d" % number, bytes.fromhex(digits)


def code_of(data):
    """Yield what a decompiler would know of the code that is asked for, an object a line."""
    if data[:4] == importlib.util.MAGIC_NUMBER:
        objects = objects_of(marshal.loads(data[16:]))  # noqa: S302 - all code here is foreign
        asked = [it for it in objects if not LASTS.isdisjoint(it["qualname"].split("."))]
        yield "code objects", "\n".join(map(json.dumps, asked)).encode()


def objects_of(code, above=""):
    name = above + code.co_name
    yield {
        "name": code.co_name,
        "qualname": name.replace("<module>.", ""),
        "names": list(code.co_names),
        "varnames": list(code.co_varnames),
        "consts": [
            it if isinstance(it, str) else repr(it)
            for it in code.co_consts
            if not isinstance(it, types.CodeType)
        ],
    }
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from objects_of(inner, name + ".")


def unescaped(data):
    """Yield the texts of a JSON document, put together."""
    texts = []

    def collect(value):
        if isinstance(value, str):
            texts.append(value)
        for inner in value.values() if isinstance(value, dict) else value:
            if isinstance(inner, (str, dict, list)):
                texts.append(inner) if isinstance(inner, str) else collect(inner)

    collect(json.loads(data))
    yield "json", "".join(text if text.endswith("\n") else text + "\n" for text in texts).encode()


def without_markup(data):
    text = re.sub(rb"<[^>]*>", b"", re.sub(rb"</(p|div|tr|li|pre)>", b"\n", data))
    yield "html", html.unescape(text.decode("utf-8", "replace")).encode()


def is_bytecode(data):
    return data[2:4] == b"\r\n" and data[:2] != b"PK"


def begins(*magics):
    return lambda data: data.startswith(magics)


# What hides its texts.
PACKED = (
    (lambda data: data[:2] == b"PK" or b"PK\5\6" in data[-65557:], zip_members),
    (lambda data: data[257:262] == b"ustar", tar_members),
    (begins(b"\x1f\x8b"), inflated("gzip", lambda file: gzip.GzipFile(fileobj=file))),
    (begins(b"BZh"), inflated("bzip2", bz2.BZ2File)),
    (begins(b"\xfd7zXZ"), inflated("xz", lzma.LZMAFile)),
    (begins(b"PACK", b"# v2 git bundle"), streams_of_a_pack),
    (begins(b"\x78\x01", b"\x78\x9c", b"\x78\xda"), zlib_stream),
)
# What names a thing as it is, and tells more of it when it is opened.
PLAIN = (
    (begins(b"SQLite format 3\0"), tables_of),
    (is_bytecode, code_of),
    (lambda data: data[:1] in b"{[" and data[:1] != b"", unescaped),
    (lambda data: b"<html" in data[:2000].lower(), without_markup),
)


def windows(data, mention):
    """Return what stands around the mentions."""
    if is_binary(data):
        places = (it.span() for it in mention.finditer(data))
        spans = merged((first - BYTES_AROUND, last + BYTES_AROUND) for first, last in places)
        texts = (re.findall(rb"[\t -~]{3,}", data[max(first, 0) : last]) for first, last in spans)
    else:
        lines = data.splitlines()
        numbers = (number for number, line in enumerate(lines) if mention.search(line))
        spans = merged((number - LINES_BEFORE, number + LINES_AFTER) for number in numbers)
        texts = (lines[max(first, 0) : last] for first, last in spans)
    return b"\n".join(line for text in texts for line in text)


def is_binary(data):
    return b"\0" in data[:8192]


def merged(spans):
    whole = []
    for first, last in spans:
        if whole and first <= whole[-1][1]:
            whole[-1] = (whole[-1][0], last)
        else:
            whole.append((first, last))
    return whole


def objects_of_git():
    """Yield what git itself tells of the work tree's repository, whatever points to it."""
    commands = (
        ["git", "log", "--all", "--reflog", "-p", "--no-color"],
        ["git", "cat-file", "--batch-all-objects", "--batch", "--buffer"],
    )
    for command in commands:
        done = subprocess.run(
            [command[0], "-c", "safe.directory=*", *command[1:]],
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        yield " ".join(command[:2]), done.stdout[:MAX_PIECE_BYTES]


def everything(places):
    """Yield (path, content) of files, of what processes were started with, and of git's objects."""
    paths = [path for place in places for path in files_below(place)]
    for path in paths + glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline"):
        content = read_regular(path)
        if content:
            yield path, content
    if os.path.exists(".git"):
        yield from objects_of_git()


def main():
    asked = json.load(sys.stdin)
    # A method is named by its class and itself, wherever in a piece.
    names = [[word.encode() for word in words] for words in asked["names"]]
    LASTS.update(words[-1] for words in asked["names"])
    last = b"(?:%s)" % b"|".join(re.escape(words[-1]) for words in names)
    # Defined, quoted, assigned; in what is no text, a word of its own.
    defined = rb"(?:def|class)\s+%s\b|[\"'.]%s[\"']|^\s*%s\s*[:=]" % (last, last, last)
    binary = rb"(?<![A-Za-z0-9_])%s(?![A-Za-z0-9_])" % last
    mentions = {False: re.compile(defined, re.MULTILINE), True: re.compile(binary)}
    ends_s, room, seen = time.monotonic() + MAX_S, MAX_PRINTED_BYTES, set()
    for place, content in everything(asked["places"]):
        for how, data in pieces_of(content, place, names):
            shown = b"" if hash(data) in seen else windows(data, mentions[is_binary(data)])[:room]
            seen.add(hash(data))
            room -= len(shown)
            if shown:
                show(how, shown)
        if not room or time.monotonic() > ends_s:
            return show("more", b"")
    return show("end", b"")


def show(how, text):
    sys.stdout.buffer.write(b"\x1e%s\n%s\n" % (how.encode("utf-8", "replace"), text))


main()
