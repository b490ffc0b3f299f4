"""Import modules inside the sandbox, one after another; JSON in, JSON over the results pipe."""

import importlib
import json
import os
import sys


def attempt(name):
    try:
        importlib.import_module(name)
    except BaseException as error:  # a module may exit, or raise what it likes
        return "%s: %s: %s" % (name, type(error).__name__, str(error).split("\n")[0][:300])
    return ""


def main():
    pipe = int(os.environ.pop("REGROW_RESULTS_FD"))
    sys.path[0] = os.getcwd()
    failures = [text for text in map(attempt, json.load(sys.stdin)["arguments"]["modules"]) if text]
    with os.fdopen(pipe, "w", encoding="ascii") as file:
        json.dump({"ok": True, "output": "\n".join(failures) or "all import"}, file)
    os._exit(0)


main()
