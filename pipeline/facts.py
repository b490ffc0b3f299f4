"""Gather what the wordings of a Task may draw on, and the code that they may not repeat."""

from collections import Counter
from collections.abc import Iterator, Sequence

from pipeline.instruction import Facts, Part
from pipeline.language.python.body import body_lines
from pipeline.language.python.describe import describe
from pipeline.language.python.seams import Plan
from pipeline.language.python.sources import package_files
from pipeline.language.python.symbols import Definition
from pipeline.language.python.text import split_lines
from pipeline.language.python.users import owner_of
from pipeline.language.python.uses import Use
from pipeline.library import Library
from pipeline.prepare import Prepared
from pipeline.task.patch import is_protected
from pipeline.task.record import Evidence, Feature, Grading, Symbol


def collect_facts(
    prepared: Prepared,
    feature: Feature,
    *,
    plan: Plan,
    evidence: Evidence,
    grading: Grading,
    library: Library,
) -> Facts:
    """Gather what the wordings may draw on, and the code that they may not repeat."""
    definitions = [library.index.definitions[it.path, it.qualname] for it in feature.symbols]
    shown = (target for target in evidence.fail_to_pass if target.id not in grading.hidden)
    symptoms = Counter(target.symptom for target in shown if target.symptom)
    bodies = (body_lines(it, library.sources[it.symbol.path]) for it in definitions)
    return Facts(
        repo=prepared.repo.name,
        feature=feature,
        evidence=evidence,
        grading=grading,
        parts=tuple(_part(it, plan, library) for it in _described(definitions)),
        body_lines=tuple(line for lines in bodies for line in lines),
        removed_files=tuple(
            it.path for it in plan.files if it.is_removed and not is_protected(it.path)
        ),
        lost_imports=tuple(_lost_imports(plan)),
        lost_names=tuple(_lost_names(plan)),
        lost_uses=tuple(dict.fromkeys(_lost_uses(plan, library))),
        symptoms=tuple(text for text, _ in symptoms.most_common()),
        option_docs=plan.option_docs,
    )


def _described(definitions: Sequence[Definition]) -> list[Definition]:
    """Return what a person would be told of: public names, special methods; else everything."""
    told = [it for it in definitions if not any(map(_is_private, it.symbol.qualname.split(".")))]
    return told or list(definitions)


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def _part(definition: Definition, plan: Plan, library: Library) -> Part:
    symbol = definition.symbol
    package = package_files(library.sources, traced=[symbol.path])
    return Part(
        symbol=symbol,
        description=describe(
            definition,
            library.sources[symbol.path],
            index=library.index,
            is_package_file=package.__contains__,
        ),
        exports=tuple(_exports(plan, library, symbol=symbol)),
    )


def _lost_imports(plan: Plan) -> Iterator[str]:
    """Yield the imports of files that stay which name none of the symbols."""
    names = {it.symbol.name for it in plan.definitions}
    for file in plan.files:
        if is_protected(file.path) or file.is_removed:
            continue
        for it in file.imports:
            if not names.intersection((it.target, it.name)):
                what = (
                    f"from {it.module} import {it.target}" if it.target else f"import {it.loaded}"
                )
                yield f"`{what}` in `{file.path}`"


def _lost_names(plan: Plan) -> Iterator[str]:
    """Yield the public names that were assigned."""
    for file in plan.files:
        if not is_protected(file.path) and not file.path.endswith(".pyi"):
            yield from (f"`{it}` in `{file.path}`" for it in file.constants if not _is_private(it))


def _lost_uses(plan: Plan, library: Library) -> Iterator[str]:
    """Yield the functions of which a branch or a call went."""
    for file in plan.files:
        for arm in file.arms:
            use = Use(
                path=file.path,
                line=arm.span.first_line,
                scope="",
                kind="read",
                at_import=False,
            )
            owner = owner_of(use, library.index)
            if isinstance(owner, Definition):
                yield f"`{owner.symbol.qualname}` in `{file.path}`"


def _exports(plan: Plan, library: Library, *, symbol: Symbol) -> Iterator[str]:
    """Yield the places besides the definition, tests aside, that named the symbol.

    Nobody imports a method.
    """
    name, is_top = symbol.name, "." not in symbol.qualname
    for file in plan.files:
        if is_protected(file.path) or file.is_removed:
            continue
        if is_top and name in file.exports:
            yield f"`__all__` of `{file.path}`"
        if is_top and any(name in {it.target, it.name} for it in file.imports):
            yield f"the imports of `{file.path}`"
        lines = split_lines(library.sources[file.path])
        for it in file.rows:
            if name == it.text.rpartition(".")[2]:
                yield f"the entry `{lines[it.line - 1].strip().rstrip(',')}` of `{file.path}`"
