"""Images that are loaded: named by their content, the same wherever they are put together."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipeline.sandbox.docker.engine import Engine
from pipeline.sandbox.docker.loading import (
    Entry,
    Layer,
    image_id,
    layers_of,
    load_image,
    write_layer,
)
from pipeline.sandbox.protocol import SandboxBrokenError

Layers = tuple[Layer, Layer]
Load = Callable[..., str]

NAME = "regrow-tests/loading:x-"


@pytest.fixture
def layers(tmp_path: Path) -> Layers:
    def write(name: str) -> Layer:
        entry = Entry(path=f"folder/{name}", content=str(tmp_path).encode())
        return write_layer([entry], into=tmp_path / f"{name}.tar")

    return write("lower"), write("upper")


@pytest.fixture
def load(engine: Engine) -> Iterator[Load]:
    loaded = []

    def make(*layers: Layer, donor: str = "", **config: object) -> str:
        image = load_image(
            engine,
            name=NAME,
            layers=layers,
            architecture="amd64",
            config=config,
            donor=donor,
        )
        loaded.append(image)
        return image

    yield make
    for image in loaded:
        if image_id(engine, image):
            engine.api.remove_image(image, force=True)


def bare(layer: Layer) -> Layer:
    return Layer(diff_id=layer.diff_id, tar=None)


def test_an_image_that_was_removed_comes_out_with_the_same_id(
    engine: Engine, layers: Layers, load: Load
):
    first = load(*layers, Labels={"a": "b"})
    engine.api.remove_image(first, force=True)
    assert not image_id(engine, first)
    assert load(*layers, Labels={"a": "b"}) == first


def test_the_tag_of_an_image_names_its_content(engine: Engine, layers: Layers, load: Load):
    images = [load(*layers), load(layers[0]), load(*layers, Labels={"a": "b"})]
    tags = [engine.client.images.get(image).tags for image in images]
    assert len({*images}) == len({tag for (tag,) in tags}) == 3
    assert all(tag.startswith(NAME) for (tag,) in tags)


def test_layers_that_the_engine_has_need_no_tar(engine: Engine, layers: Layers, load: Load):
    lower, upper = layers
    load(lower)
    image = load(bare(lower), upper)
    assert layers_of(engine, image) == (bare(lower), bare(upper))


def test_an_engine_that_wants_all_layers_gets_those_of_the_donor(
    engine: Engine, layers: Layers, load: Load
):
    lower, upper = layers
    donor = load(lower, upper)
    # No engine has a layer at hand for another place.
    image = load(bare(upper), bare(lower), donor=donor)
    assert layers_of(engine, image) == (bare(upper), bare(lower))


def test_a_layer_that_nobody_has_breaks_the_image(layers: Layers, load: Load):
    with pytest.raises(SandboxBrokenError, match=f"Docker cannot take image {NAME}"):
        load(bare(layers[0]))
