"""Serve one call of a file tool inside the sandbox: JSON in, JSON over the results pipe."""

import json
import os
import sys

MAX_MATCHES = 200
MAX_LINE = 300


def list_files(path="."):
    found = []
    for root, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        found += [os.path.relpath(os.path.join(root, name)) for name in sorted(names)]
    return "\n".join(found)


def read_text(path):
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
        return file.read()


def write_text(path, text):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        file.write(text)


def read_file(path, first_line=1, num_lines=0):
    """Return the text, or `num_lines` lines of it from `first_line` on."""
    lines = read_text(path).splitlines(keepends=True)
    end = first_line - 1 + num_lines if num_lines else len(lines)
    return "".join(lines[first_line - 1 : end])


def search(text, path="."):
    """Return `path:line: text` of the lines that hold a fixed string."""
    matches = []
    for name in list_files(path).split("\n"):
        try:
            lines = read_text(name).split("\n")
        except OSError:
            continue
        matches += [
            "%s:%d: %s" % (name, number, line.strip()[:MAX_LINE])
            for number, line in enumerate(lines, 1)
            if text in line and "\0" not in line
        ]
    extra = len(matches) - MAX_MATCHES
    return "\n".join(matches[:MAX_MATCHES] + (["… and %d more" % extra] if extra > 0 else []))


def write_file(path, content):
    write_text(path, content)
    return "written: %s" % path


def edit_file(path, old, new):
    """Replace the one place where `old` stands."""
    text = read_text(path)
    places = text.count(old)
    if not old or places != 1:
        raise ValueError("`old` must stand exactly once in %s, it stands %d times" % (path, places))
    write_text(path, text.replace(old, new))
    return "edited: %s" % path


def edit_files(edits):
    """Replace in several files, in order; none is changed unless all edits have their place."""
    texts = {}
    for edit in edits:
        path, old = edit["path"], edit["old"]
        if path not in texts:
            texts[path] = read_text(path)
        places = texts[path].count(old)
        if not old or places != 1:
            raise ValueError(
                "`old` must stand exactly once in %s, it stands %d times" % (path, places)
            )
        texts[path] = texts[path].replace(old, edit["new"])
    for path, text in texts.items():
        write_text(path, text)
    return "edited: %s" % ", ".join(texts)


def delete_files(paths):
    for path in paths:
        os.unlink(path)
    return "deleted: %s" % ", ".join(paths)


TOOLS = {
    "list_files": list_files,
    "read_file": read_file,
    "search": search,
    "write_file": write_file,
    "edit_file": edit_file,
    "edit_files": edit_files,
    "delete_files": delete_files,
}


def main():
    pipe = int(os.environ.pop("REGROW_RESULTS_FD"))
    call = json.load(sys.stdin)
    try:
        answer = {"ok": True, "output": TOOLS[call["tool"]](**call["arguments"])}
    except (OSError, ValueError, TypeError, KeyError) as error:
        answer = {"ok": False, "output": "%s: %s" % (type(error).__name__, error)}
    with os.fdopen(pipe, "w", encoding="ascii") as file:
        json.dump(answer, file)


main()
