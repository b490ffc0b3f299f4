import shutil
from pathlib import Path

from pipeline.scrub import scrub
from tests.pipeline import pantry
from tests.pipeline.conftest import MakeTree

MODULE = "pantry/units.py"


def test_residues_with_copies_of_the_code_go(make_tree: MakeTree):
    tree = make_tree(pantry.FILES)
    code = (tree / MODULE).read_text()
    (tree / "pantry/units.py~").write_text(code)
    page = tree / "docs/_build/html/units.html"
    page.parent.mkdir(parents=True)
    page.write_text(
        "<html><pre>" + code.replace("<", "&lt;").replace(">", "&gt;") + "</pre></html>"
    )
    shutil.make_archive(str(tree / "release"), "zip", tree, "pantry")
    assert scrub(tree) == ("docs/_build/html/units.html", "pantry/units.py~", "release.zip")
    assert not page.exists()
    assert {it for it in pantry.FILES if not (tree / it).exists()} == set()


def test_what_holds_nothing_of_the_code_stays(make_tree: MakeTree):
    tree = make_tree({**pantry.FILES, "notes.orig": "buy jam\n", "docs/_build/a.html": "<p>jam"})
    assert scrub(tree) == ()


def test_what_somebody_wrote_stays(make_tree: MakeTree):
    tree = make_tree({**pantry.FILES, "pantry/twin.py": pantry.FILES[MODULE]})
    assert scrub(tree) == ()


def test_what_a_test_names_stays(make_tree: MakeTree):
    test = "from pathlib import Path\n\ndef test_copy():\n    assert Path('copy.bak').exists()\n"
    tree = make_tree({**pantry.FILES, "copy.bak": pantry.FILES[MODULE], "tests/test_copy.py": test})
    assert scrub(tree) == ()
    assert Path(tree, "copy.bak").exists()
