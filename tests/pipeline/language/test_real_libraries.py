"""Plans for real libraries: the outcome compiles and nothing else changes."""

import ast
import functools
from pathlib import Path
from types import ModuleType

import jinja2
import packaging
import pytest

from pipeline.language.python.file_cut import FileCut
from pipeline.language.python.lint import new_findings
from pipeline.language.python.references import index_tree
from pipeline.language.python.seams import Plan, plan_deletion
from pipeline.language.python.symbols import Definition
from pipeline.language.python.text import is_valid


def sources_of(package: ModuleType) -> dict[str, str]:
    folder = Path(package.__path__[0])
    return {
        path.relative_to(folder.parent).as_posix(): path.read_bytes().decode()
        for path in folder.rglob("*.py")
    }


def everything(_path: str) -> bool:
    return True


@functools.cache
def plans(package: ModuleType) -> list[tuple[Definition, Plan | str]]:
    files = sources_of(package)
    index = index_tree(files)
    public = [it for it in index.definitions.values() if it.is_public]
    return [(it, plan_deletion([it], files, index, is_package_file=everything)) for it in public]


@functools.cache
def units(source: str) -> dict[str, list[str]]:
    """Dump each top-level statement and class member under its name, imports as nothing."""
    found: dict[str, list[str]] = {}
    for node in ast.parse(source).body:
        members = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
        for member in members:
            name = getattr(member, "name", type(member).__name__)
            found.setdefault(prefix + name, []).append(ast.dump(member))
    return found


def changed(before: str, after: str, file: FileCut) -> set[str]:
    """Return the names of definitions that changed though nobody asked for it."""
    old, new = units(before), units(after)
    wanted = set(file.symbols)
    owners = {f"{name}." for name in wanted}
    return {
        name
        for name in old
        if old[name] != new.get(name)
        and name not in wanted
        and not name.startswith(tuple(owners))
        and name.rpartition(".")[2] not in {"Import", "ImportFrom", "Assign", "AnnAssign", "If"}
    }


@pytest.mark.parametrize(("package", "least"), [(packaging, 20), (jinja2, 50)])
def test_each_public_symbol_is_cut_cleanly_or_has_a_reason(package: ModuleType, least: int):
    files = sources_of(package)
    results = plans(package)
    reasons = [result for _, result in results if isinstance(result, str)]
    assert {it.partition(":")[0] for it in reasons} == {"used_at_import", "used_elsewhere"}
    done = [(definition, it) for definition, it in results if isinstance(it, Plan)]
    assert len(done) >= least
    for definition, plan in done:
        assert definition.symbol.path in dict(plan.new_sources)
        for file, (path, text) in zip(plan.files, plan.new_sources, strict=True):
            assert is_valid(text, path=path)
            assert len(text) < len(files[path])
            imports_inside = any(binding.scope for binding in file.imports)
            assert imports_inside or not changed(files[path], text, file), definition.symbol


@pytest.mark.parametrize("package", [packaging, jinja2])
def test_a_linter_finds_nothing_in_what_is_left_that_it_had_not_found_before(package: ModuleType):
    files = sources_of(package)
    done = [it for _, it in plans(package) if isinstance(it, Plan)]
    found = {
        (path, finding)
        for plan in done
        for path, text in plan.new_sources
        for finding in new_findings(files[path], text, path=path)
    }
    assert done
    assert found == set()
