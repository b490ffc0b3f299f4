"""Find the Features of a tree: what can go together, and the tests that need it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from pipeline.language.python.arms import Arm
from pipeline.language.python.closure import Gone
from pipeline.language.python.layout import module_name
from pipeline.language.python.option.code import read_code
from pipeline.language.python.option.plan import Tree
from pipeline.language.python.references import ReferenceIndex, index_tree
from pipeline.language.python.seams import Besides, close_deletion, cut_files, going
from pipeline.language.python.sources import package_files
from pipeline.language.python.symbols import Definition
from pipeline.language.python.usage import uses_of
from pipeline.language.python.users import Judge
from pipeline.options import find_option_features
from pipeline.reach import Bits, Reach
from pipeline.seeds import MAX_SET, Seed, propose, title_of
from pipeline.task.record import Baseline, Feature, FeatureKind
from pipeline.task.reject import Reject
from pipeline.trace import Trace

# Code that more of the tests reach is a foundation, not a feature.
MAX_REACHED_SHARE = 0.3
# A smaller body is a line to type, not a feature to grow back.
MIN_BODY_LINES = 3
# Names and lines of code beyond which a deletion is the library rather than a feature of it.
MAX_WHOLE_SET, MAX_LINES = 60, 800
# A group of tests in more files than this is named by their number.
MAX_GROUP_FILES = 3
# Decorators that make a function a command, by their last name.
COMMANDS = frozenset({"command", "group", "subcommand"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Something that is no task, and why."""

    # What a person calls it.
    subject: str
    reject: Reject


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What could be deleted from a tree, sorted into candidates and the rest."""

    features: tuple[Feature, ...]
    left_out: tuple[LeftOut, ...]


def find_features(
    sources: Mapping[str, str], *, trace: Trace, baseline: Baseline, import_roots: Sequence[str]
) -> Found:
    """Grow each seed until nothing that stays needs what goes, and judge what came of it."""
    package = package_files(sources, traced={path for path, _ in trace.tests})
    index = index_tree(sources, import_roots=import_roots)
    reach = Reach(trace, order=baseline.passing)
    finder = _Finder(sources=sources, index=index, reach=reach, package=package)
    features: dict[frozenset[tuple[str, str]], Feature] = {}
    left_out: dict[str, LeftOut] = {}
    tried: set[frozenset[tuple[str, str]]] = set()
    for seed in propose(index, reach=reach, package=package):
        keys = frozenset((it.symbol.path, it.symbol.qualname) for it in seed.definitions)
        if keys in tried:
            continue
        tried.add(keys)
        result = finder.judge(seed)
        if isinstance(result, Reject):
            left_out.setdefault(seed.title, LeftOut(subject=seed.title, reject=result))
        else:
            grown = frozenset((it.path, it.qualname) for it in result.symbols)
            features.setdefault(grown, result)
    options, refused = _find_options(sources, finder, trace=trace)
    left_out.update(refused)
    return Found(
        features=(*features.values(), *options.values()), left_out=tuple(left_out.values())
    )


def _find_options(
    sources: Mapping[str, str], finder: "_Finder", *, trace: Trace
) -> tuple[dict[str, Feature], dict[str, LeftOut]]:
    """Return the options of a tree that can go, and those that cannot, by title."""
    tree = Tree(
        sources=sources,
        index=finder.index,
        code=read_code(sources),
        is_package_file=finder.package.__contains__,
    )
    features, left_out = {}, {}
    found = find_option_features(tree, reach=finder.reach, trace=trace, max_share=MAX_REACHED_SHARE)
    for title, result in found:
        if isinstance(result, Reject):
            left_out[title] = LeftOut(subject=title, reject=result)
        else:
            features[title] = replace(result, group=name_group(result.tests))
    return features, left_out


@dataclass(frozen=True, slots=True, kw_only=True)
class _Finder:
    """What is known of a tree."""

    sources: Mapping[str, str]
    index: ReferenceIndex
    reach: Reach
    # Files of the packages under test.
    package: frozenset[str]

    def judge(self, seed: Seed) -> Feature | Reject:
        """Return the candidate that grows from a seed, or why there is none."""
        gone = close_deletion(
            seed.definitions,
            self.index,
            is_package_file=self.package.__contains__,
            besides=Besides(constants=seed.constants),
            judge=self._judge_of(seed),
        )
        if isinstance(gone, str):
            reason, _, detail = gone.partition(": ")
            return _reject(reason, detail)
        definitions = going(gone, is_package_file=self.package.__contains__)
        # Tests that cannot be imported any more stand among the definitions.
        tests = self.reach.union_of(gone.definitions)
        return self._refuse(gone, definitions, tests) or self._feature(gone, definitions, tests)

    def _judge_of(self, seed: Seed) -> Judge:
        most = MAX_WHOLE_SET if seed.is_whole else MAX_SET

        def fits(gone: Gone) -> bool:
            kept = going(gone, is_package_file=self.package.__contains__)
            share = self.reach.share(self.reach.union_of(gone.definitions))
            return len(kept) <= most and share <= MAX_REACHED_SHARE

        return Judge(
            is_package_file=self.package.__contains__,
            is_user=self._is_user,
            is_test=self.reach.has_tests,
            fits=fits,
            is_free=self._is_free,
        )

    def _is_free(self, arm: Arm, owner: Definition, gone: Gone) -> bool:
        tests = self.reach.union_of(gone.definitions)
        inside = self.reach.bits_at(owner.symbol.path, arm.body.first_line, arm.body.last_line)
        return bool(inside) and not inside & ~tests and bool(self.reach.bits_of(owner) & ~tests)

    def _is_user(self, used: Definition, user: Definition) -> bool:
        """Tell a method's callers from those of namesakes: a test of a caller enters both."""
        is_method = "." in used.symbol.qualname
        return not is_method or bool(self.reach.bits_of(used) & self.reach.bits_of(user))

    def _refuse(self, gone: Gone, definitions: Sequence[Definition], tests: Bits) -> Reject | None:
        num_lines = _num_lines(gone, definitions)
        if num_lines < MIN_BODY_LINES:
            return _reject("too_small", f"{num_lines} lines of code")
        if num_lines > MAX_LINES or len(definitions) > MAX_WHOLE_SET:
            return _reject("too_large", f"{num_lines} lines of code, {len(definitions)} names")
        for definition in definitions:
            if self.reach.is_early(definition) and not self._is_explained(definition, gone):
                name = title_of(definition, self.index)
                detail = f"{name} runs while modules are imported or tests collected"
                return _reject("reached_at_import", detail)
        if not tests:
            return _reject("no_test_reaches_it", "no test of the baseline enters it")
        share = self.reach.share(tests)
        if share > MAX_REACHED_SHARE:
            return _reject("reached_by_too_many_tests", f"{share:.0%} of the tests enter it")
        return None

    def _is_explained(self, definition: Definition, gone: Gone) -> bool:
        """Tell whether what runs something at import goes with it."""
        return any(it.at_import and gone.covers(it) for it in uses_of(definition, self.index))

    def _feature(self, gone: Gone, definitions: Sequence[Definition], tests: Bits) -> Feature:
        ids = self.reach.ids(tests)
        main = sorted(definitions, key=lambda it: not it.is_public)
        bits = [self.reach.bits_of(it) for it in definitions]
        paths = {it.symbol.path for it in definitions}
        num_entered = sum(1 for it in bits if it)
        removed = self._removed(gone) if self._is_all_of(paths, definitions) else set()
        packages = _packages_of(removed)
        return Feature(
            title=self._title_of(main, removed, packages),
            kind=_kind_of(definitions, removed=removed, packages=packages),
            symbols=tuple(it.symbol for it in main),
            constants=tuple(f"{path}:{name}" for path, name in gone.constants),
            arms=tuple(
                f"{path}:{arm.span.first_line}-{arm.span.last_line}"
                for path, arm in sorted(gone.arms, key=lambda it: (it[0], it[1].span.first_line))
            ),
            tests=ids,
            group=name_group(ids),
            num_lines=_num_lines(gone, definitions),
            num_modules=len(paths),
            exclusivity=round(num_entered / max(self.reach.num_entered(tests), 1), 3),
            cohesion=round(
                sum(it.bit_count() for it in bits) / (max(num_entered, 1) * len(ids)), 3
            ),
        )

    def _is_all_of(self, paths: set[str], definitions: Sequence[Definition]) -> bool:
        """Tell whether nothing else is defined in some files."""
        names = {(it.symbol.path, it.symbol.qualname) for it in definitions}
        return all(
            (it.symbol.path, it.symbol.qualname) in names
            for path in paths
            for it in self.index.scans[path].definitions
            if "." not in it.symbol.qualname
        )

    def _removed(self, gone: Gone) -> set[str]:
        """Return the files of the package that go whole."""
        files = cut_files(gone, self.sources, self.index, is_package_file=self.package.__contains__)
        return {it.path for it in files if it.is_removed and it.path in self.package}

    def _title_of(
        self, definitions: Sequence[Definition], removed: set[str], packages: Sequence[str]
    ) -> str:
        main = [it for it in definitions if it.is_public] or list(definitions)
        if packages or (removed and len({it.symbol.path for it in definitions}) == 1):
            paths = packages or [main[0].symbol.path]
            return _counted([module_name(self.index.layout, it) for it in paths])
        return _counted([title_of(it, self.index) for it in main])


def _packages_of(removed: set[str]) -> list[str]:
    """Return the `__init__.py` of the packages that go whole, without those inside others."""
    inits = sorted(it for it in removed if PurePosixPath(it).name == "__init__.py")
    folders = {PurePosixPath(it).parent for it in inits}
    return [it for it in inits if folders.isdisjoint(PurePosixPath(it).parent.parents)]


def _kind_of(
    definitions: Sequence[Definition], *, removed: set[str], packages: Sequence[str]
) -> FeatureKind:
    """Return the kind of what goes, with the files that go whole and the packages among them."""
    if packages:
        return "subpackage"
    if len({it.symbol.path for it in definitions}) > 1:
        return "cross-cutting"
    if removed:
        return "module"
    kinds = {it.symbol.kind for it in definitions}
    if len(definitions) > 1:
        return "method group" if kinds == {"method"} else "function group"
    (only,) = definitions
    is_command = any(it.rpartition(".")[2] in COMMANDS for it in only.decorators)
    return "command" if is_command else only.symbol.kind


def _counted(names: Sequence[str]) -> str:
    """Return one name, two, or the first and the number of the others."""
    first, *others = names
    if not others:
        return first
    return f"{first} and {others[0] if len(others) == 1 else f'{len(others)} more'}"


def _num_lines(gone: Gone, definitions: Sequence[Definition]) -> int:
    """Count the lines of code that go."""
    spans = (arm.span for _, arm in gone.arms)
    from_others = sum(it.last_line - it.first_line + 1 for it in spans)
    return sum(it.num_body_lines for it in definitions) + from_others


def _reject(reason: str, detail: str) -> Reject:
    return Reject(stage="feature", reason=reason, detail=detail)


def name_group(tests: Sequence[str]) -> str:
    """Name what the tests have in common: a function, a class, a file, some files."""
    files = list(dict.fromkeys(key.split("::")[0] for key in tests))
    if len(files) > MAX_GROUP_FILES:
        return f"{len(files)} files"
    if len(files) > 1:
        return ", ".join(f"`{file}`" for file in files)
    parts = [key.split("[")[0].split("::") for key in tests]
    common = []
    for level in zip(*parts, strict=False):
        if len(set(level)) > 1:
            break
        common.append(level[0])
    return f"`{'::'.join(common)}`"
