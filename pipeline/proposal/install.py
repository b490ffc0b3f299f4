"""Find what to install for a suite, first where the project says it, then by running it."""

from dataclasses import dataclass, replace

from pipeline.dependencies import find_dependencies
from pipeline.desk import open_desk
from pipeline.environment import resolve
from pipeline.proposal.error import accepted
from pipeline.proposal.missing import missing_packages
from pipeline.proposal.record import Shop, Subject
from pipeline.sandbox.protocol import Limits
from pipeline.task.grade import Desk
from pipeline.task.origin import Environment, Install, Repo
from pipeline.task.reject import Reject
from pipeline.task.suite import SuiteRequest, SuiteRun, run_suite
from pipeline.uv import find_interpreter

# Of the first run, whose cost nobody knows.
LIMITS = Limits(wall_s=300, cpu_s=90)
FIRST = SuiteRequest(keep_bytecode=True)

NOT_AS_WHEELS = "What it names for its tests cannot be had as wheels."
BY_RUNNING = "With what the suite asks for and nothing names."


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One run of a suite, with all that it needs."""

    repo: Repo
    environment: Environment
    run: SuiteRun
    # A sentence on what is installed; empty when the project's own metadata was enough.
    note: str


def complete(repo: Repo, *, note: str, subject: Subject, shop: Shop) -> Trial:
    """Run the suite, adding what it misses, until it misses nothing that the index has.

    Raises:
        ProposalError: there is no environment for it.
    """
    repo, environment, note = _resolvable(repo, note=note, subject=subject, shop=shop)
    tried: set[str] = set()
    while True:
        run = run_first(open_repo(repo, environment, subject=subject, shop=shop))
        roots = environment.import_roots
        wanted = missing_packages(run, tree=subject.tree, import_roots=roots) - tried
        tried |= wanted
        more, environment = _add(repo, environment, wanted, subject=subject, shop=shop)
        if more == repo:
            return Trial(repo=repo, environment=environment, run=run, note=note)
        repo, note = more, note or BY_RUNNING


def open_repo(repo: Repo, environment: Environment, *, subject: Subject, shop: Shop) -> Desk:
    """Build the environment and return where the suite runs."""
    return accepted(
        open_desk(
            subject.fetched.snapshot,
            environment,
            command=repo.test,
            folders=shop.folders,
            sandbox=shop.sandbox,
        )
    )


def run_first(desk: Desk) -> SuiteRun:
    """Run the suite without knowing what it costs."""
    return run_suite(desk.sandbox, tree=desk.tree, bench=desk.bench, request=FIRST, limits=LIMITS)


def _resolve(repo: Repo, *, subject: Subject, shop: Shop) -> Environment | Reject:
    """Lock what a Repo's suite needs."""
    folders = shop.folders
    return resolve(repo, fetched=subject.fetched, cache=folders.cache, index=folders.index)


def _resolvable(
    repo: Repo, *, note: str, subject: Subject, shop: Shop
) -> tuple[Repo, Environment, str]:
    """Fall back to pytest alone when what the project names cannot be installed."""
    environment = _resolve(repo, subject=subject, shop=shop)
    is_named = repo.install != Install(exclude_newer=repo.install.exclude_newer)
    if isinstance(environment, Environment) or is_named:
        return repo, accepted(environment), note
    shop.say(f"{environment.reason}: {environment.detail}")
    bare = replace(repo, install=replace(repo.install, packages=("pytest",)))
    return bare, accepted(_resolve(bare, subject=subject, shop=shop)), NOT_AS_WHEELS


def _add(
    repo: Repo, environment: Environment, wanted: set[str], *, subject: Subject, shop: Shop
) -> tuple[Repo, Environment]:
    """Add those packages that can be installed together with the others."""
    for package in sorted(wanted):
        install = spelled_out(repo, environment.route, subject=subject, shop=shop)
        more = replace(
            repo, install=replace(install, packages=tuple(sorted({*install.packages, package})))
        )
        found = _resolve(more, subject=subject, shop=shop)
        if isinstance(found, Environment):
            shop.say(f"the suite asks for {package}")
            repo, environment = more, found
    return repo, environment


def spelled_out(repo: Repo, route: str, *, subject: Subject, shop: Shop) -> Install:
    """Name the place that was discovered: whatever is named ends the discovery of the rest.

    Args:
        repo: whose `install` may leave everything to be discovered.
        route: where it was, as in `Environment.route`.
        subject: the Repo's files.
        shop: what trying needs.
    """
    install = repo.install
    kind, _, name = route.partition(":")
    if install != Install(exclude_newer=install.exclude_newer) or kind == "none":
        return install
    if kind == "group":
        return replace(install, groups=(name,))
    if kind == "extra":
        return replace(install, extras=(name,))
    if kind == "requirements":
        return replace(install, requirements=(name,))
    # tox, whose list can only be copied.
    found = accepted(
        find_dependencies(
            install,
            tree=subject.tree,
            project=replace(subject.fetched.project, requires=()),
            python=accepted(find_interpreter(repo.python, cache=shop.folders.cache)).version,
        )
    )
    return replace(install, packages=tuple(it for it in found.requirements if it != "pytest"))
