"""Images that show what a job may read: layered, shared, built once."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipeline.sandbox import view
from pipeline.sandbox.docker.baking import Baked, bake, in_order
from pipeline.sandbox.docker.engine import Engine
from pipeline.sandbox.protocol import Mount, SandboxBrokenError


def folder(path: Path, **files: str) -> Path:
    path.mkdir()
    for name, text in files.items():
        (path / name).write_text(text)
    return path


def layers(engine: Engine, baked: Baked) -> list[str]:
    found: list[str] = engine.api.inspect_image(baked.image)["RootFS"]["Layers"]
    return found


def remove(engine: Engine, *images: Baked) -> None:
    for baked in images:
        engine.api.remove_image(baked.tag, force=True)


def test_an_image_is_built_once(engine: Engine, base: str, tmp_path: Path):
    mount = Mount(source=folder(tmp_path / "a", file=str(tmp_path)), target="/data")
    first, second = (bake(engine, base, (mount,)) for _ in range(2))
    assert (first.was_built, second.was_built) == (True, False)
    assert (first.tag, first.image, first.size_bytes) == (
        second.tag,
        second.image,
        second.size_bytes,
    )
    assert first.build_s > second.build_s == 0
    remove(engine, first)


def test_threads_that_need_the_same_image_build_it_once(engine: Engine, base: str, tmp_path: Path):
    mount = Mount(source=folder(tmp_path / "a", file=str(tmp_path)), target="/data")
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: bake(engine, base, (mount,)), range(4)))
    assert len({it.image for it in found}) == 1
    remove(engine, found[0])


def test_another_content_gives_another_image(engine: Engine, base: str, tmp_path: Path):
    source = folder(tmp_path / "a", file="before")
    mount = Mount(source=source, target="/data")
    before = bake(engine, base, (mount,))
    (source / "file").write_text("afterwards")
    after = bake(engine, base, (mount,))
    assert before.image != after.image
    remove(engine, before, after)


def test_equal_keys_are_trusted_to_mean_equal_content(engine: Engine, base: str, tmp_path: Path):
    one = Mount(source=folder(tmp_path / "a", file="x"), target="/data", key=str(tmp_path))
    two = Mount(source=folder(tmp_path / "b", file="y"), target="/data", key=str(tmp_path))
    found = bake(engine, base, (one,)), bake(engine, base, (two,))
    assert found[0].image == found[1].image
    remove(engine, found[0])


def test_images_share_the_layers_that_they_have_in_common(
    engine: Engine, base: str, tmp_path: Path
):
    environment = Mount(source=folder(tmp_path / "env", **{"pyvenv.cfg": ""}), target="/env")
    tools = [
        Mount(source=folder(tmp_path / name, file=name), target="/tools") for name in ("a", "b")
    ]
    one, two = (bake(engine, base, (tool, environment)) for tool in tools)
    shared = [a == b for a, b in zip(layers(engine, one), layers(engine, two), strict=True)]
    # The base, the interpreter and the environment.
    assert shared[:4] == [True, True, True, False]
    remove(engine, one, two)


def test_what_changes_seldom_lies_below_what_changes_often(tmp_path: Path):
    mounts = {
        "/tools": Mount(source=folder(tmp_path / "tools", file=""), target="/tools"),
        "/pyc": Mount(source=folder(tmp_path / "pyc"), target="/pyc", key="of packages"),
        "/env": Mount(source=folder(tmp_path / "env", **{"pyvenv.cfg": ""}), target="/env"),
    }
    targets = [it.target for it in in_order(tuple(mounts.values()))]
    assert targets[-3:] == ["/env", "/pyc", "/tools"]
    assert all(Path(view.base_python()).is_relative_to(it) for it in targets[:-3])


def test_a_build_that_fails_says_how_it_ended_and_where_its_log_is(engine: Engine):
    with pytest.raises(SandboxBrokenError) as caught:
        bake(engine, "regrow/none:none", ())
    message = str(caught.value)
    assert "cannot be built: " in message
    assert "regrow/none" in message
    assert "\n" not in message
    log = Path(message.rpartition("whole log: ")[2])
    assert "FROM regrow/none:none" in log.read_text()
    log.unlink()
