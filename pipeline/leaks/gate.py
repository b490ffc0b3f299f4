"""Prove by content that a solver of a Task cannot read its answer: Certificate."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pipeline.leaks.base import BUDGET
from pipeline.leaks.channel import INSTRUCTION, channel_of
from pipeline.leaks.judge import Recovered, judge, provable
from pipeline.leaks.match import Matcher
from pipeline.leaks.policy import Owner, decide
from pipeline.leaks.prints import deletion_prints
from pipeline.leaks.scan import Place, Scanned, scan_files
from pipeline.leaks.symbol import KINDS, SymbolPrints, keys_of
from pipeline.leaks.verdicts import Verdicts
from pipeline.task.certificate import Certificate, Channel, Finding, LeakVerdict
from pipeline.task.patch import is_protected
from pipeline.task.record import Task
from pipeline.task.solve_tree import solve_tree
from pipeline.task.suite import BYTECODE, TREE
from pipeline.task.tree import bytecode_of, changes_between

# A Task is small; what is recorded of it is too.
MAX_RECORDED = 40
# What others have installed: all but the tree with its bytecode, and where a solver can write.
_INSTALLED = re.compile(rf"^(?:{BYTECODE})?/(?!(?:work|tmp|home|var|srv|run|opt|instruction)/)(.+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What all Tasks of a Repo are judged by."""

    # By path.
    snapshot: Mapping[str, bytes]
    # Of all that the Snapshot holds.
    matcher: Matcher
    # What every solver sees besides the tree.
    base: Scanned
    # Bytecode of the Snapshot, from which a solver's is taken.
    bytecode: Path
    verdicts: Verdicts
    # Names of folders and modules that its code is installed as.
    packages: frozenset[str]

    def certify(self, task: Task) -> Certificate:
        """Scan all that a solver of a Task sees.

        Raises:
            OSError: the machine failed.
        """
        shown = solve_tree(task, self.snapshot)
        own = self._scan(dict(_own_files(task, shown)))
        changes = changes_between(self.snapshot, shown)
        compiled = self._scan({
            f"{BYTECODE}{TREE}/{path}": content
            for path, content in bytecode_of(self.bytecode, without=changes)
        })
        prints = deletion_prints(self.snapshot, task.deletion)
        found = tuple(find_leaks(own.places, prints, packages=self.packages))
        places = (*compiled.places, *self.base.places)
        # What others have in common with it is another on every machine.
        blocking = (it for it in find_leaks(places, prints, packages=self.packages) if it.blocks)
        findings = sorted((*found, *blocking), key=_badness)
        unread = (*own.unread, *compiled.unread, *self.base.unread)
        said = tuple(f"{it.path}: {it.why}" for it in unread)
        return Certificate(
            verdict=_verdict(findings, said),
            prints=self.matcher.digest,
            num_files=own.num_files,
            num_bytes=own.num_bytes,
            findings=tuple(findings[:MAX_RECORDED]),
            unread=said[:MAX_RECORDED],
            unprovable=tuple(it.symbol for it in prints if "body" not in provable(it)),
        )

    def _scan(self, files: Mapping[str, bytes]) -> Scanned:
        return scan_files(files, matcher=self.matcher, verdicts=self.verdicts, budget=BUDGET)


def _own_files(task: Task, shown: Mapping[str, bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield what solvers of this Task are given, by the path that they see it under."""
    for path, content in shown.items():
        yield f"{TREE}/{path}", content
    for instruction in task.instructions:
        yield f"{INSTRUCTION}/{instruction.style}.md", instruction.text.encode()


def find_leaks(
    places: Iterable[Place], prints: Sequence[SymbolPrints], *, packages: frozenset[str]
) -> Iterator[Finding]:
    """Yield what each place gives away of the deleted code, names alone aside.

    Args:
        places: where something of the Snapshot was found.
        prints: of what is deleted; stubs declare, so that there is nothing in them to hide.
        packages: what the Snapshot's code is installed as.
    """
    wanted = [it for it in prints if not it.symbol.partition(":")[0].endswith(".pyi")]
    keys = frozenset(key for it in wanted for kind in KINDS for key in keys_of(it, kind))
    weights = {it.symbol: sum(it.lines.values()) for it in wanted}
    for place in places:
        found = place.found & keys
        recovered = judge(found, wanted) if found else ()
        told = sum(weights[it.symbol] * it.share for it in recovered if "body" in it.parts)
        material = told / (sum(weights.values()) or 1)
        for it in recovered:
            if it.parts != ("name",):
                yield _finding(place, it, packages=packages, material=material)


def _finding(
    place: Place, recovered: Recovered, *, packages: frozenset[str], material: float
) -> Finding:
    channel = channel_of(place.path, place.decoders)
    owner = _owner_of(place.path, channel, packages=packages)
    decision = decide(recovered, channel=channel, owner=owner, material=material)
    return Finding(
        channel=channel,
        path=place.path,
        decoders=place.decoders,
        symbol=recovered.symbol,
        parts=recovered.parts,
        share=recovered.share,
        excerpt=place.excerpt,
        blocks=decision.blocks,
        rule=decision.rule,
    )


def _owner_of(path: str, channel: Channel, *, packages: frozenset[str]) -> Owner:
    if path.startswith(f"{BYTECODE}{TREE}/"):
        return "module"
    if path.startswith(f"{TREE}/"):
        module = path.removeprefix(f"{TREE}/")
        is_code = channel == "source" and not is_protected(module)
        return "module" if is_code and _is_importable(module) else "own"
    if path.startswith(f"{INSTRUCTION}/"):
        return "own"
    installed = _INSTALLED.search(path)
    names = re.split(r"[^a-z0-9_]+", installed[1].lower()) if installed else packages
    return "foreign" if packages.isdisjoint(names) else "stray"


def _is_importable(path: str) -> bool:
    """Tell whether a file can be imported by a name, rather than being kept under an odd one."""
    return all(part.isidentifier() for part in PurePosixPath(path).with_suffix("").parts)


def _verdict(findings: Sequence[Finding], unread: Sequence[str]) -> LeakVerdict:
    if any(it.blocks for it in findings):
        return "leaks"
    return "unread" if unread else "clean"


def _badness(finding: Finding) -> tuple[object, ...]:
    """Sort what blocks first, then what gives away most."""
    return (not finding.blocks, -len(finding.parts), -finding.share, finding.path, finding.symbol)


def package_names(snapshot: Mapping[str, bytes]) -> frozenset[str]:
    """Return the names that a Snapshot's code is installed as: folders and modules at the top."""
    names: set[str] = set()
    for path in map(PurePosixPath, snapshot):
        parts = path.parts[1:] if path.parts[0] in {"src", "lib"} else path.parts
        if path.suffix == ".py" and parts and not is_protected(str(path)):
            names.add(parts[0].removesuffix(".py").lower())
    return frozenset(names - {"setup"})
