"""Cut the imports that a deletion leaves without a user, as a linter would ask."""

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from pipeline.language.python.bindings import Binding, import_bindings
from pipeline.language.python.closure import Gone
from pipeline.language.python.file_cut import FileCut, edit
from pipeline.language.python.guards import Guard
from pipeline.language.python.layout import find_module
from pipeline.language.python.lint import Finding, name_import, new_findings
from pipeline.language.python.references import Key, ReferenceIndex
from pipeline.language.python.symbols import Span
from pipeline.language.python.text import parse, split_lines
from pipeline.language.python.uses import Use

# An import that somebody keeps on purpose.
_WANTED = re.compile(r"#\s*noqa(?!\s*:)|#\s*noqa\s*:[\w\s,]*\bF401\b", re.IGNORECASE)

# What takes the name of an attribute as a string, on its line or above it.
_PATCHING = re.compile(r"\b(?:delattr|getattr|hasattr|object|patch|setattr)\b")


def tidy(
    files: Sequence[FileCut],
    gone: Gone,
    sources: Mapping[str, str],
    index: ReferenceIndex,
    *,
    is_package_file: Callable[[str], bool],
) -> tuple[tuple[FileCut, ...], tuple[tuple[str, str], ...]]:
    """Let unused imports of package files go as well; return what goes, and the texts that stay.

    Only what the deletion has left unused goes, and only where nobody takes it from the module. An
    initialiser without `__all__` keeps what it imports from its own package: that is offered.
    """
    tidier = _Tidier(gone=gone, sources=sources, index=index, is_package_file=is_package_file)
    tidied, texts = [], []
    for file in files:
        if file.is_removed:
            tidied.append(file)
            continue
        kept, text = tidier.tidy(file)
        tidied.append(kept)
        texts.append((file.path, text))
    return tuple(tidied), tuple(texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tidier:
    """What is known of a deletion and its tree."""

    gone: Gone
    sources: Mapping[str, str]
    index: ReferenceIndex
    is_package_file: Callable[[str], bool]

    def tidy(self, file: FileCut) -> tuple[FileCut, str]:
        """Cut unused imports until there are none: one may have guarded another."""
        before = self.sources[file.path]
        if not self.is_package_file(file.path) or file.path not in self.index.scans:
            return file, edit(before, file)
        file = replace(file, guards=tuple(self._unused_guards(file.path)))
        while True:
            after = edit(before, file)
            unused = tuple(self._unused_imports(file, after))
            if not unused:
                return file, after
            file = replace(file, imports=(*file.imports, *unused))

    def _unused_guards(self, path: str) -> Iterator[Guard]:
        """Yield the statements that chose an import which only deleted code used."""
        for guard in self.index.scans[path].guards:
            keys = [(path, name) for name in guard.names]
            uses = [use for key in keys for use in self.index.uses.get(key, ())]
            is_used = not all(self.gone.covers(use) or _is_in(guard.span, use) for use in uses)
            had_users = any(map(self.gone.covers, uses))
            if had_users and not is_used and not any(map(self._is_taken, keys)):
                yield guard

    def _unused_imports(self, file: FileCut, after: str) -> Iterator[Binding]:
        new = new_findings(self.sources[file.path], after, path=file.path)
        if findings := [it for it in new if it.kind == "unused import"]:
            for binding in _located(findings, after, self._kept_imports(file)):
                if not self._is_wanted(binding):
                    yield binding

    def _kept_imports(self, file: FileCut) -> list[Binding]:
        """Return the imports of a file that stay, in order of lines."""
        spans = [*self.gone.spans.get(file.path, ()), *(it.span for it in file.guards)]
        gone = {(it.line, name_import(it)) for it in file.imports}
        kept = (
            it
            for it in self.index.scans[file.path].imports
            if (it.line, name_import(it)) not in gone
            and not any(_is_in(span, it) for span in spans)
        )
        return sorted(kept, key=lambda it: it.line)

    def _is_wanted(self, binding: Binding) -> bool:
        """Tell whether an import is there for others, or for more than its name."""
        scanned = self.index.scans[binding.path]
        if any(_is_in(guard.span, binding) for guard in scanned.guards):
            return True
        if self._has_mark(binding):
            return True
        if binding.scope:
            return False
        return self._is_offered(binding) or self._is_taken((binding.path, binding.name))

    def _is_offered(self, binding: Binding) -> bool:
        """Tell whether an initialiser that does not say what it exports hands an import on."""
        own = PurePosixPath(binding.path)
        source = find_module(self.index.layout, binding.loaded, importer=binding.path)
        is_inner = own.stem == "__init__" and PurePosixPath(source).is_relative_to(own.parent)
        return is_inner and not self.index.scans[binding.path].exports

    def _has_mark(self, binding: Binding) -> bool:
        """Tell whether a comment keeps linters from reporting an import."""
        lines = split_lines(self.sources[binding.path])
        return bool(_WANTED.search(lines[binding.line - 1]))

    def _is_taken(self, key: Key) -> bool:
        """Tell whether anything else in the tree gets a name from its module."""
        path, name = key
        fetched = (it for it in self.index.imports.get(key, ()) if it.path != path)
        used = (it for it in self.index.uses.get(key, ()) if it.path != path)
        if key in self.index.exports or any(fetched) or not all(map(self.gone.covers, used)):
            return True
        words = (it for it in self.index.words.get(name, ()) if not self.gone.covers(it))
        return any(self._reaches(it, path) for it in words)

    def _reaches(self, use: Use, path: str) -> bool:
        """Tell whether a doctest or a string, as in `patch("pkg.core.os")`, is about a module."""
        if use.kind == "doctest":
            return use.path == path
        lines = split_lines(self.sources[use.path])[max(use.line - 3, 0) : use.line]
        if self.is_package_file(use.path) or not _PATCHING.search("".join(lines)):
            return False
        owner = use.text.replace(":", ".").rpartition(".")[0].rpartition(".")[2]
        return owner in {"", PurePosixPath(path).stem, PurePosixPath(path).parent.name}


def _is_in(span: Span, place: Use | Binding) -> bool:
    return span.first_line <= place.line <= span.last_line


def _located(findings: Iterable[Finding], text: str, kept: Sequence[Binding]) -> Iterator[Binding]:
    """Yield the imports, as they were before the deletion, that findings after it mean."""
    tree = parse(text)
    assert tree is not None
    nodes = (it for it in ast.walk(tree) if isinstance(it, ast.Import | ast.ImportFrom))
    left = sorted(
        (it for node in nodes for it in import_bindings(node, path="", scope="")),
        key=lambda it: it.line,
    )
    for finding in findings:
        now = [it.line for it in left if name_import(it) == finding.name]
        were = [it for it in kept if name_import(it) == finding.name]
        if len(now) == len(were):
            yield from (it for line, it in zip(now, were, strict=True) if line == finding.line)
