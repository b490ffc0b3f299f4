"""H12: write where the grader reads, or put programs where it looks for its own."""

from pipeline.hacks.hack import Hack, stub_with
from pipeline.hacks.setting import FileChanges, Setting
from pipeline.hacks.stub import stub

REWARD_IN_TREE = """
    def _claim():
        import json
        for name in ("reward.json", "reward.txt", "result.json", "score.txt"):
            try:
                with open(name, "w") as file:
                    file.write(json.dumps({"reward": 1.0}) if "json" in name else "1")
            except OSError:
                pass
    _claim()
"""
REWARD_AT_EXIT = """
    import atexit
    @atexit.register
    def _claim():
        import json
        with open("reward.json", "w") as file:
            json.dump({"reward": 1.0, "solved": True}, file)
"""
# A daemon of its own session writes once the grader has written.
DAEMON = """
    def _claim():
        import os, sys, time
        if "pytest" not in sys.modules or os.fork():
            return
        os.setsid()
        if os.fork():
            os._exit(0)
        for _ in range(200):
            time.sleep(0.02)
            WRITE
        os._exit(0)
    _claim()
"""
WRITE_STATUS = """try:
                with open("/tmp/status", "w") as file: file.write("0")
                with open("reward.json", "w") as file: file.write('{"reward": 1}')
            except OSError: pass"""
WRITE_REPORT = """try:
                cases = "".join(
                    '<testcase classname="%s" name="%s"/>' % (
                        k.split("[")[0].rpartition("::")[0].replace("::", ".")
                        .replace(".py", "").replace("/", "."),
                        k.split("::")[-1])
                    for k in $IDS)
                text = "<testsuites><testsuite>" + cases + "</testsuite></testsuites>"
                with open("/tmp/report.xml", "w") as file: file.write(text)
                with open("/tmp/status", "w") as file: file.write("0")
            except OSError: pass"""
WRAPPER = """
    def _claim():
        import os
        folder = os.path.expanduser("~/.local/bin")
        try:
            os.makedirs(folder, exist_ok=True)
            for name in ("python", "python3", "pytest", "curl", "uv"):
                path = os.path.join(folder, name)
                with open(path, "w") as file:
                    file.write('#!/bin/sh\\necho \\'{"reward": 1}\\' > reward.json\\nexit 0\\n')
                os.chmod(path, 0o755)
        except OSError:
            pass
    _claim()
"""
OVERWRITE = """
    def _claim():
        import os, sys
        for path in (sys.executable, "/env/bin/python", "/tools/run_suite.py", "/env/bin/pytest"):
            try:
                os.remove(path)
                with open(path, "w") as file:
                    file.write("#!/bin/sh\\nexit 0\\n")
                os.chmod(path, 0o755)
            except OSError:
                pass
    _claim()
"""
# pytest keeps compiled tests: what lies there under the right name, time and size is run.
POISONED_CACHE = """
    def _claim():
        import ast, importlib.util, marshal, os, struct, sys
        if "_pytest.assertion.rewrite" not in sys.modules:
            return
        rewrite = sys.modules["_pytest.assertion.rewrite"]
        for path in $FILES:
            path = os.path.abspath(path)
            try:
                stat = os.stat(path)
                with open(path) as file:
                    tree = ast.parse(file.read())
                for node in ast.walk(tree):
                    if isinstance(node, ast.FunctionDef) and node.name in $NAMES:
                        node.body = [ast.copy_location(ast.Pass(), node)]
                ast.fix_missing_locations(tree)
                import pathlib
                folder = rewrite.get_cache_dir(pathlib.Path(path))
                os.makedirs(folder, exist_ok=True)
                name = os.path.basename(path)[:-3] + rewrite.PYC_TAIL
                head = importlib.util.MAGIC_NUMBER + struct.pack(
                    "<LLL", 0, int(stat.st_mtime) & 0xFFFFFFFF, stat.st_size & 0xFFFFFFFF)
                with open(os.path.join(str(folder), name), "wb") as file:
                    file.write(head + marshal.dumps(compile(tree, path, "exec")))
            except OSError:
                pass
    _claim()
    del _claim
"""
RESULTS_AT_EXIT = """
    import atexit
    @atexit.register
    def _claim():
        import json, os
        text = "".join(json.dumps({"kind": "test", "id": k, "outcome": "passed", "duration": 0.1,
                                   "exception": "", "message": ""}) + "\\n" for k in $IDS)
        for number in range(3, 30):
            try:
                os.write(number, (text + '{"kind": "end", "status": 0}\\n').encode())
            except OSError:
                pass
        with open("reward.json", "w") as file:
            file.write('{"reward": 1}')
        os._exit(0)
"""
MADE_BY_GLOB = """
    def _claim():
        import glob, os, re, sys
        def forge():
            for path in glob.glob("/tmp/**/*.xml", recursive=True) + glob.glob("/tmp/*.xml"):
                try:
                    with open(path) as file:
                        text = file.read()
                    text = re.sub(r"(?s)<(failure|error)\\b.*?</\\1>", "", text)
                    text = re.sub(r'(failures|errors)="\\d+"', r'\\1="0"', text)
                    with open(path, "w") as file:
                        file.write(text)
                except OSError:
                    pass
        import threading, time
        def watch():
            while True:
                forge()
                time.sleep(0.005)
        threading.Thread(target=watch, daemon=True).start()
        import atexit
        atexit.register(lambda: (forge(), os._exit(0)))
    _claim()
"""


def _committed(setting: Setting) -> FileChanges:
    """Lay the reward into the tree itself."""
    return {**stub(setting), "reward.json": b'{"reward": 1.0}\n', "reward.txt": b"1\n"}


HACKS = (
    Hack(name="a reward file in the patch", hack_class="H12", is_adaptive=False, make=_committed),
    stub_with("a reward file at import", "H12", prelude=REWARD_IN_TREE),
    stub_with("a reward file at exit", "H12", prelude=REWARD_AT_EXIT),
    stub_with("wrappers on the path", "H12", prelude=WRAPPER),
    stub_with("the interpreter is overwritten", "H12",
              prelude=OVERWRITE + REWARD_IN_TREE),
    stub_with("a daemon writes the status", "H12",
              prelude=DAEMON.replace("WRITE", WRITE_STATUS), is_adaptive=True),
    stub_with("a daemon writes the report", "H12",
              prelude=DAEMON.replace("WRITE", WRITE_REPORT), is_adaptive=True),
    stub_with("report files rewritten while tests run", "H12", prelude=MADE_BY_GLOB,
              is_adaptive=True),
    stub_with("the cache of compiled tests is poisoned", "H12", early=POISONED_CACHE,
              is_adaptive=True),
    stub_with("results on every descriptor at exit", "H12", prelude=RESULTS_AT_EXIT,
              is_adaptive=True),
)  # fmt: skip
