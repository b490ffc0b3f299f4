"""Make a Feature of each option that some tests pass: a parameter that can be folded away."""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from pipeline.language.python.bindings import DEFINITIONS
from pipeline.language.python.option.code import last_name, read_code
from pipeline.language.python.option.find import FoundOption, find_options
from pipeline.language.python.option.plan import OptionPlan, Tree
from pipeline.language.python.option.scope import called_by, is_constructor
from pipeline.language.python.references import Key
from pipeline.language.python.symbols import Definition
from pipeline.language.python.text import parse, split_lines
from pipeline.reach import Bits, Reach
from pipeline.seeds import title_of
from pipeline.task.record import Feature
from pipeline.task.reject import Reject
from pipeline.task.shorten import shorten
from pipeline.task.solve_tree import function_of
from pipeline.trace import Trace

# More lines than the signature: something has to be behind an option.
MIN_LINES = 2
# Of the tests that enter a function: what more of them pass is no option.
MAX_PASSING_SHARE = 0.5
# What is called to see a signature.
REFLECTION = re.compile("signature|argspec", re.IGNORECASE)


def find_option_features(
    tree: Tree, *, reach: Reach, trace: Trace, max_share: float
) -> Iterator[tuple[str, Feature | Reject]]:
    """Yield the title of each option that tests pass, with the candidate or why it is none.

    Args:
        tree: its code.
        reach: which tests enter what.
        trace: which tests run which lines.
        max_share: of the Baseline that may need an option.
    """
    tests = _Tests(reach=reach, trace=trace, max_share=max_share, tree=tree)
    for found in find_options(tree, refuse=tests.refuse_early):
        title = _title_of(found, tree)
        if isinstance(found.plan, OptionPlan):
            yield title, _judge(found, found.plan, title=title, tests=tests)
            continue
        passing = tests.passing(found.owners, found.users)
        reject = tests.refuse(passing, tests.entering(found.owners)) if passing else None
        yield title, reject or _reject("not_foldable", found.plan)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tests:
    """Says which tests need an option."""

    reach: Reach
    trace: Trace
    # Of the Baseline that may need an option.
    max_share: float
    tree: Tree

    def of(self, found: FoundOption, plan: OptionPlan) -> Bits:
        """Return the tests that pass it, as their code says, or run what only they can run."""
        passing = self.passing(found.owners, found.users)
        passing |= self.reach.union_of(_inspecting(found, self.tree)) if passing else 0
        for path, spans in plan.branches.items():
            for span in spans:
                keys = self.trace.lines.tests_at(path, span.first_line, span.last_line)
                passing |= self.reach.bits_named(keys)
        return passing

    def entering(self, owners: Sequence[Key]) -> Bits:
        """Return the tests that enter what takes an option."""
        return self.reach.union_of(self.tree.index.definitions[key] for key in owners)

    def passing(self, owners: Sequence[Key], users: Sequence[Key]) -> Bits:
        """Return the tests whose code passes an option to what they enter."""
        callers = (self.tree.index.definitions.get(key) for key in users)
        found = self.reach.union_of(it for it in callers if it is not None)
        return found & self.entering(owners)

    def refuse_early(self, owner: Key, users: Sequence[Key]) -> str:
        """Return why an option is none, as far as test code tells; else empty."""
        passing = self.passing([owner], users)
        reject = self.refuse(passing, self.entering([owner])) if passing else None
        return reject.detail if reject else ""

    def refuse(self, passing: Bits, entering: Bits) -> Reject | None:
        """Return why some tests make no option, if they do not."""
        if not passing:
            return _reject("no_test_reaches_it", "no test of the baseline passes it")
        if passing.bit_count() > MAX_PASSING_SHARE * entering.bit_count():
            share = passing.bit_count() / max(entering.bit_count(), 1)
            detail = f"{share:.0%} of the tests that enter what takes it pass it"
            return _reject("reached_by_too_many_tests", detail)
        if (share := self.reach.share(passing)) > self.max_share:
            return _reject("reached_by_too_many_tests", f"{share:.0%} of the tests pass it")
        return None


def _inspecting(found: FoundOption, tree: Tree) -> Iterator[Definition]:
    """Yield the test code that looks at the signature of what takes an option."""
    names = set(map(called_by, found.owners))
    calls = (it for name, them in tree.code.calls.items() if REFLECTION.search(name) for it in them)
    for it in calls:
        caller = tree.index.definitions.get((it.path, it.scope))
        is_test = caller is not None and not tree.is_package_file(it.path)
        if caller and is_test and names.intersection(map(last_name, it.node.args)):
            yield caller


def _judge(
    found: FoundOption, option: OptionPlan, *, title: str, tests: _Tests
) -> Feature | Reject:
    tree = tests.tree
    owners = [tree.index.definitions[key] for key in found.owners]
    passing = tests.of(found, option)
    reject = tests.refuse(passing, tests.entering(found.owners))
    if reject is not None:
        return reject
    if not _is_shown(found, tests.reach.ids(passing), tree):
        return _reject("no_test_reaches_it", "what would be shown of its test does not pass it")
    num_lines = sum(
        _num_removed(tree.sources[path], text) for path, text in option.plan.new_sources
    )
    if num_lines < MIN_LINES:
        return _reject("too_small", f"{num_lines} lines of code")
    ids = tests.reach.ids(passing)
    entered = [tests.reach.bits_of(it) & passing for it in owners]
    num_entered = sum(1 for it in entered if it)
    return Feature(
        title=title,
        kind="option",
        symbols=tuple(it.symbol for it in owners),
        constants=(),
        tests=ids,
        group="",
        num_lines=num_lines,
        num_modules=len({path for path, _ in found.owners}),
        exclusivity=round(num_entered / max(tests.reach.num_entered(passing), 1), 3),
        cohesion=round(sum(it.bit_count() for it in entered) / (max(num_entered, 1) * len(ids)), 3),
        option=found.name,
    )


def _is_shown(found: FoundOption, ids: Sequence[str], tree: Tree) -> bool:
    """Tell whether a solver sees the option passed: of a single test only a half is shown."""
    functions = set(map(function_of, ids))
    if len(functions) > 1:
        return True
    path, *names = functions.pop().split("::")
    whole = tree.sources.get(path, "").encode()
    shown = shorten(whole, names) or whole
    code = read_code({path: shown.decode()})
    key = (path, ".".join(names))
    calls = code.calls_in.get(key, ())
    passed = {ast.dump(it.node) for it in found.calls}
    return any(ast.dump(it.node) in passed for it in calls) or key in code.flags.get(found.name, ())


def _title_of(found: FoundOption, tree: Tree) -> str:
    path, qualname = found.owners[0]
    if found.name.startswith("-"):
        return f"{found.name} of {title_of(tree.index.definitions[path, qualname], tree.index)}"
    key = (path, qualname.rpartition(".")[0] if is_constructor(qualname) else qualname)
    definition = tree.index.definitions.get(key) or tree.index.definitions[path, qualname]
    return f"{title_of(definition, tree.index)}({found.name}=)"


def _num_removed(before: str, after: str) -> int:
    """Count the lines of code of a text that are gone or changed."""
    if before == after:
        return 0
    one, other = _code_lines(before), _code_lines(after)
    blocks = SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
    return len(one) - sum(block.size for block in blocks)


def _code_lines(text: str) -> Sequence[str]:
    """Return the lines without indentation, docstrings, comments and blank ones."""
    tree = parse(text) or ast.Module([], [])
    documented = {
        number
        for node in ast.walk(tree)
        if isinstance(node, DEFINITIONS) and ast.get_docstring(node, clean=False) is not None
        for number in range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)
    }
    numbered = ((number, line.strip()) for number, line in enumerate(split_lines(text), start=1))
    return [
        line
        for number, line in numbered
        if line and not line.startswith("#") and number not in documented
    ]


def _reject(reason: str, detail: str) -> Reject:
    return Reject(stage="feature", reason=reason, detail=detail)
