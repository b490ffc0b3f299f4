"""What is found is named by the way it comes to a solver."""

import pytest

from pipeline.leaks.channel import INSTRUCTION, channel_of
from pipeline.task.certificate import Channel

CASES: list[tuple[str, tuple[str, ...], Channel]] = [
    ("/work/.git/objects/pack/pack-1.pack", ("git:blob 0123",), "git"),
    ("/work/.git/logs/HEAD", (), "git"),
    ("/srv/all.bundle", ("git:commit 0123",), "git"),
    ("/work/pkg/__pycache__/a.cpython-311.pyc", ("pyc 3.11",), "bytecode"),
    ("/work/dist/lib.whl", ("zip:pkg/a.pyc", "pyc 3.8"), "bytecode"),
    ("/work/.mypy_cache/3.11/cache.3.db", ("sqlite:files2.data",), "type-checker cache"),
    ("/work/.pytest_cache/v/cache/nodeids", (), "test cache"),
    ("/work/.hypothesis/examples/1", (), "test cache"),
    ("/work/htmlcov/a_py.html", ("html",), "coverage"),
    ("/work/.coverage", ("sqlite:file.path",), "coverage"),
    ("/work/build/lib/pkg/a.py", (), "build output"),
    ("/work/lib.egg-info/PKG-INFO", (), "build output"),
    ("/work/dist/lib-1.0.tar.gz", ("gzip", "tar:lib-1.0/a.py"), "build output"),
    ("/env/lib/python3.11/site-packages/pkg/a.py", (), "installed copy"),
    ("/usr/lib/python3/dist-packages/pkg/a.py", (), "installed copy"),
    ("/home/regrow/.cache/pip/http-v2/1/2/3.body", ("zip:pkg/a.py",), "package cache"),
    ("/env/lib/python3.11/site-packages/pip/_vendor/rich/a.py", (), "vendored copy"),
    ("/tmp/tmp1/wrapper", (), "temporary folder"),
    ("/work/docs/_build/html/a.html", ("html",), "built documentation"),
    ("/work/docs/usage.rst", (), "documentation"),
    ("/work/README.md", (), "documentation"),
    ("/work/typings/pkg/a.pyi", (), "stub"),
    ("/work/tests/test_a.py", (), "test"),
    ("/work/src/pkg/a.py", (), "source"),
    ("/work/tags", (), "index or backup"),
    ("/work/src/pkg/a.py~", (), "index or backup"),
    ("/work/src/pkg/.a.py.swp", (), "index or backup"),
    ("/work/libs/units.jar", ("zip:Units.class", "class"), "java"),
    ("/work/node_modules/x/index.js", (), "javascript"),
    ("/work/static/app.js.map", ("json",), "javascript"),
    ("/work/src/pkg/_speed.so", (), "native"),
    ("/work/src/pkg/a.py", ("layer 3 0123456789ab",), "image layer"),
    (f"{INSTRUCTION}/plain.md", (), "instruction"),
    ("/opt/strange", (), "other"),
]


@pytest.mark.parametrize(("path", "decoders", "channel"), CASES, ids=[it[0] for it in CASES])
def test_the_channel_follows_from_path_and_decoders(
    path: str, decoders: tuple[str, ...], channel: Channel
) -> None:
    assert channel_of(path, decoders) == channel


def test_what_has_no_other_channel_is_source_below_the_packages_of_the_repo() -> None:
    assert channel_of("/work/src/pkg/data", package_roots=["/work/src"]) == "source"
    assert channel_of("/work/srcs/pkg/data", package_roots=["/work/src"]) == "other"
