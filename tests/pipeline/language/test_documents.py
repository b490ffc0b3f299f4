"""Pages lose the directives that could not import what is gone, and nothing else."""

import pytest

from pipeline.language.python.documents import cut_document

GONE = {"pkg.gone", "pkg.core.gone", "pkg.module"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (".. autofunction:: pkg.gone\n\nText\n", "Text\n"),
        (
            "A\n\n.. autofunction:: pkg.gone\n   :x:\n\n   More.\n\n.. autofunction:: pkg.b\n",
            "A\n\n.. autofunction:: pkg.b\n",
        ),
        (".. autoclass:: pkg.gone\n   :members:\n", ""),
        (".. automodule:: pkg.module\n", ""),
        (".. autofunction:: pkg.module.f\n", ""),
        (".. currentmodule:: pkg\n\n.. autofunction:: gone\nB\n", ".. currentmodule:: pkg\n\nB\n"),
        (".. autofunction:: pkg.gone(a, b=1)\nB\n", "B\n"),
        (
            ".. autosummary::\n   :toctree:\n\n   pkg.gone\n   ~pkg.b\n\nB\n",
            ".. autosummary::\n   :toctree:\n\n   ~pkg.b\n\nB\n",
        ),
        ("# A\n\n::: pkg.gone\n    options:\n      x: 1\n\n::: pkg.b\n", "# A\n\n::: pkg.b\n"),
        ("  .. automethod:: pkg.gone\n\n  Text\n", "  Text\n"),
        (".. literalinclude:: ../src/pkg/module.py\n   :lines: 1-9\n\nB\n", "B\n"),
    ],
)
def test_the_directive_goes_with_its_options(before: str, after: str):
    assert cut_document(before, GONE) == after


@pytest.mark.parametrize(
    "text",
    [
        "We love :func:`pkg.gone` and pkg.gone(1).\n",
        ".. autofunction:: pkg.gone_too\n",
        ".. autofunction:: other.gone\n",
        ".. autosummary::\n\n   pkg.b\n\n   \n\n   text with words\n",
        "   pkg.gone\n",
        ".. literalinclude:: ../src/pkg/other.py\n",
        "",
    ],
)
def test_everything_else_stays(text: str):
    assert cut_document(text, GONE) == text
