"""One run against a user's store: every check in turn, within a time, and nothing left behind."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress

from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.conformance.check import Check, CheckResult, Context, Status
from delta_core.conformance.checks import ACCESS, CHECKS, PRECONDITIONS
from delta_core.conformance.place import CleanUp, Place
from delta_core.conformance.report import ConformanceReport
from delta_core.conformance.surroundings import surroundings
from delta_core.conformance.workers import worker_processes
from delta_core.errors import ConfigurationError, DeltaError, StoreContractError, StorePermissionError

MAX_SECONDS = 300.0
DEFAULT_WRITERS = 8
MOST_WRITERS = 64

_CLEAN_UP_SHARE = 0.12
_PATIENCE = 3.0
_START_SECONDS = 40.0


def certify(
    url: str,
    options: Mapping[str, str],
    *,
    writers: int = DEFAULT_WRITERS,
    max_seconds: float = MAX_SECONDS,
    on_result: Callable[[CheckResult], None] = lambda result: None,
    clock: Clock = SYSTEM_CLOCK,
) -> ConformanceReport:
    """Check a store below a URI.

    Everything is written below one fresh prefix, which is cleaned up at the end; nothing else below the URI
    is read, written or deleted. About two thousand requests of a few bytes, and 40 MB each way.

    Args:
        url: where tables would be; need not exist where directories are made as needed.
        options: storage options; their values are in no result.
        writers: how many processes race and commit, 2 to 64.
        max_seconds: when to stop, cleaning up included. What was not run then is named, and the store is not
            certified.
        on_result: called with each result as it comes.
        clock: for durations.

    Raises:
        ConfigurationError: the URI, an option or the number of writers is wrong.
    """
    if not 2 <= writers <= MOST_WRITERS:
        raise ConfigurationError(
            f"{writers} writers prove nothing or too much.", fix=f"Pass a number from 2 to {MOST_WRITERS}."
        )
    run = _Run(Place(url, options, clock=clock), writers, max_seconds, on_result, clock)
    with ExitStack() as stack:
        run.perform(stack)
    return run.report()


class _Run:
    """The state of a run."""

    def __init__(
        self,
        place: Place,
        writers: int,
        max_seconds: float,
        on_result: Callable[[CheckResult], None],
        clock: Clock,
    ) -> None:
        self._place = place
        self._clock = clock
        self._on_result = on_result
        self._given = max_seconds / MAX_SECONDS
        self._began = clock.monotonic_seconds()
        self._began_ms = clock.now_ms()
        self._last_check = self._began + max_seconds * (1 - _CLEAN_UP_SHARE)
        self._end = self._began + max_seconds
        self._context = Context(place=place, writers=writers, clock=clock)
        self._results: list[CheckResult] = []
        self._clean_up = CleanUp(deleted=0)

    def perform(self, stack: ExitStack) -> None:
        """Run every check that can be; then clean up, whatever happened."""
        try:
            usable = all(self._check(check).status is Status.PASSED for check in (ACCESS, PRECONDITIONS))
            if not usable and len(self._results) == 1:
                self._not_run(PRECONDITIONS, "the check before it did not pass")
            for check in CHECKS:
                if not usable:
                    self._not_run(check, "the checks before it did not pass")
                    continue
                why = self._start_workers(stack) if check.with_workers else ""
                if why:
                    self._not_run(check, why)
                else:
                    self._check(check)
        finally:
            stack.close()
            left = self._end - self._clock.monotonic_seconds()
            self._clean_up = self._place.clean_up(seconds=max(5.0, left))

    def report(self) -> ConformanceReport:
        """What became of it all."""
        return ConformanceReport(
            uri=self._place.uri,
            writers=self._context.writers,
            began_ms=self._began_ms,
            surroundings=surroundings(self._place.uri),
            seconds=self._clock.monotonic_seconds() - self._began,
            results=tuple(self._results),
            clean_up=self._clean_up,
        )

    def _start_workers(self, stack: ExitStack) -> str:
        """Start the processes once; a reason when they do not come up."""
        if self._context.workers:
            return ""

        def start() -> None:
            self._context.workers = stack.enter_context(worker_processes(self._place, self._context.writers))

        try:
            seconds = min(_START_SECONDS, self._last_check - self._clock.monotonic_seconds())
            _within(start, seconds, "starting the processes")
        except DeltaError as error:
            return f"the processes did not come up: {error}"
        return ""

    def _check(self, check: Check) -> CheckResult:
        remaining = self._last_check - self._clock.monotonic_seconds()
        if remaining <= 1.0:
            return self._not_run(check, "the time was over; give it more by --max-seconds")
        self._context.seconds = min(check.seconds * min(self._given, 1.0), remaining)
        began = self._clock.monotonic_seconds()
        detail = problem = cause = fix = ""
        status = Status.PASSED
        said: list[str] = []
        try:
            patience = min(check.seconds * _PATIENCE * max(self._given, 0.3), remaining)
            _within(lambda: said.append(check.run(self._context)), patience, f"the check {check.name!r}")
            detail = said[0]
        except DeltaError as error:
            status = _status(check, error)
            problem, cause, fix = error.problem, error.cause or check.cause, error.fix or check.fix
            if check.with_workers:
                # They may be in the middle of it; what comes next needs fresh ones.
                self._drop_workers()
        result = CheckResult(
            name=check.name,
            title=check.title,
            status=status,
            decides_writers=check.decides_writers,
            seconds=self._clock.monotonic_seconds() - began,
            detail=detail,
            problem=problem,
            cause=cause,
            fix=fix,
        )
        return self._add(result)

    def _drop_workers(self) -> None:
        for worker in self._context.workers:
            with suppress(OSError):
                worker.kill()
        self._context.workers = ()

    def _not_run(self, check: Check, why: str) -> CheckResult:
        result = CheckResult(
            name=check.name,
            title=check.title,
            status=Status.NOT_RUN,
            decides_writers=check.decides_writers,
            seconds=0.0,
            detail=why,
        )
        return self._add(result)

    def _add(self, result: CheckResult) -> CheckResult:
        self._results.append(result)
        self._on_result(result)
        return result


def _status(check: Check, error: DeltaError) -> Status:
    """What an error says of the store; without access it says nothing of what the store would do."""
    if isinstance(error, StorePermissionError) and check.deletes:
        return Status.LIMITED
    broken = isinstance(error, StoreContractError) and not isinstance(error, _NoEndError)
    return Status.NO_ACCESS if check is ACCESS and not broken else Status.FAILED


class _NoEndError(StoreContractError):
    """A check had no end in its time."""


def _within(call: Callable[[], object], seconds: float, what: str) -> None:
    """Call; an error of any kind becomes a DeltaError, and so does no answer in time.

    A call that does not come back is left to a thread that ends with the process: its requests have limits
    of their own, and longer ones.
    """
    raised: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise _NoEndError(
            f"There was no end to {what} in {seconds:.0f} s.",
            cause="The store answers slowly or not at all.",
            fix="Try again when it is at rest, or give it more time by --max-seconds.",
        )
    for error in raised:
        if isinstance(error, DeltaError):
            raise error
        raise StoreContractError(f"{type(error).__name__}: {error}") from error
