"""A conformance run on a user's store: all checks in order, within a time limit, then a clean-up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress

from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.conformance.check import Check, CheckResult, Context, Status
from delta_core.conformance.checks import ACCESS, CHECKS, PRECONDITIONS
from delta_core.conformance.environment import surroundings
from delta_core.conformance.place import CleanUp, Place
from delta_core.conformance.report import ConformanceReport
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
    """Run all checks on the store of a URI, and return the report.

    Everything is written below one new prefix, which is cleaned up at the end. Nothing else below the URI is
    read, written or deleted. Makes about two thousand requests of a few bytes, and transfers 40 MB each way.

    Args:
        url: the parent directory of the prefix; need not exist where directories are created as needed.
        options: storage options; results do not contain their values.
        writers: the number of processes that race and commit, 2 to 64.
        max_seconds: the time limit, including the clean-up. The report names the checks that did not run,
            and the store is then not certified.
        on_result: called with each result.
        clock: used for durations.

    Raises:
        ConfigurationError: the URI, an option or the number of writers is wrong.
    """
    if not 2 <= writers <= MOST_WRITERS:
        raise ConfigurationError(
            f"A run with {writers} writers is not possible.", fix=f"Pass a number from 2 to {MOST_WRITERS}."
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
        self._time_scale = max_seconds / MAX_SECONDS
        self._began = clock.monotonic_seconds()
        self._began_ms = clock.now_ms()
        self._last_check = self._began + max_seconds * (1 - _CLEAN_UP_SHARE)
        self._end = self._began + max_seconds
        self._context = Context(place=place, writers=writers, clock=clock)
        self._results: list[CheckResult] = []
        self._clean_up = CleanUp(deleted=0)

    def perform(self, stack: ExitStack) -> None:
        """Run every check that can run, then clean up, also after an error."""
        try:
            usable = all(self._check(check).status is Status.PASSED for check in (ACCESS, PRECONDITIONS))
            if not usable and len(self._results) == 1:
                self._not_run(PRECONDITIONS, "the previous check did not pass")
            for check in CHECKS:
                if not usable:
                    self._not_run(check, "the previous checks did not pass")
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
        """The report of the run."""
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
        """Start the processes once. Returns the reason when they cannot be started."""
        if self._context.workers:
            return ""

        def start() -> None:
            self._context.workers = stack.enter_context(worker_processes(self._place, self._context.writers))

        try:
            seconds = min(_START_SECONDS, self._last_check - self._clock.monotonic_seconds())
            _within(start, seconds, "starting the processes")
        except DeltaError as error:
            return f"the processes could not be started: {error}"
        return ""

    def _check(self, check: Check) -> CheckResult:
        remaining = self._last_check - self._clock.monotonic_seconds()
        if remaining <= 1.0:
            return self._not_run(check, "the time limit was reached; increase --max-seconds")
        self._context.seconds = min(check.seconds * min(self._time_scale, 1.0), remaining)
        began = self._clock.monotonic_seconds()
        detail = problem = cause = fix = ""
        status = Status.PASSED
        details: list[str] = []
        try:
            patience = min(check.seconds * _PATIENCE * max(self._time_scale, 0.3), remaining)
            _within(lambda: details.append(check.run(self._context)), patience, f"the check {check.name!r}")
            detail = details[0]
        except DeltaError as error:
            status = _status(check, error)
            problem, cause, fix = error.problem, error.cause or check.cause, error.fix or check.fix
            if check.with_workers:
                # The processes may be in the middle of a command; the next check needs new ones.
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
    """The status for an error. An error of the access check has no result for the store's behaviour."""
    if isinstance(error, StorePermissionError) and check.deletes:
        return Status.LIMITED
    broken = isinstance(error, StoreContractError) and not isinstance(error, _TimeLimitError)
    return Status.NO_ACCESS if check is ACCESS and not broken else Status.FAILED


class _TimeLimitError(StoreContractError):
    """A check did not end within its time limit."""


def _within(call: Callable[[], object], seconds: float, what: str) -> None:
    """Call with a time limit. Every exception, and a time-out, is raised as a DeltaError.

    A call that does not return stays in a thread that ends with the process: its requests have longer time
    limits of their own.
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
        raise _TimeLimitError(
            f"{what[0].upper()}{what[1:]} did not end within {seconds:.0f} s.",
            cause="The store answers slowly or not at all.",
            fix="Run the checks again when the store has less load, or increase --max-seconds.",
        )
    for error in raised:
        if isinstance(error, DeltaError):
            raise error
        raise StoreContractError(f"{type(error).__name__}: {error}") from error
