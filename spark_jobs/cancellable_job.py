"""A job in a separate thread, so that a signal can cancel it cleanly.

An exception that a signal handler raises inside a call to the JVM leaves half an answer in the connection,
which the next call would read. Therefore the main thread only waits, and asks Spark to stop the work. The
job's thread then gets an ordinary error and cleans up.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import TYPE_CHECKING

from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import JobError
from delta_core.execution.executor import Executor
from delta_core.execution.inline_executor import InlineExecutor
from delta_core.execution.progress import ProgressSink
from delta_core.jobs import JobContext, JobResult, JobSpec, default_registry, run_job
from delta_core.jobs.params.load import KIND as LOAD_KIND
from spark_jobs.environment_conf import handed_conf
from spark_jobs.job_kinds import register
from spark_jobs.session import get_session
from spark_jobs.spark_executor import SparkExecutor

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOGGER = logging.getLogger(__name__)

GRACE_SECONDS = 30.0
"""The time that a cancelled job has to end. After that, the process exits."""

_POLL_SECONDS = 0.2
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class CancellableJob:
    """Runs one job. The session is created when the job first needs it, and stopped at the end.

    Args:
        spec: the job.
        remote: a Spark Connect URL.
        master: a Spark master.
        app_name: the application's name in the Spark UI; None uses the job's kind.
        storage_options: options for the job's stores, kept only in memory.
        progress: receives the job's events.
    """

    def __init__(
        self,
        spec: JobSpec,
        *,
        remote: str | None,
        master: str | None,
        app_name: str | None = None,
        storage_options: Mapping[str, str] | None = None,
        progress: ProgressSink,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.cancelled_by: int | None = None
        self._spec = spec
        self._remote = remote
        self._master = master
        self._app_name = app_name or f"deltaward {spec.kind}"
        self._storage_options = dict(storage_options or {})
        self._progress = progress
        self._clock = clock
        self._session: SparkSession | None = None
        self._result: JobResult | None = None

    def run(self) -> JobResult:
        """Run the job and return its result. Call this in the main thread, which receives signals."""
        thread = threading.Thread(target=self._work, name="job", daemon=True)
        with self._signals():
            thread.start()
            deadline: float | None = None
            while thread.is_alive():
                thread.join(_POLL_SECONDS)
                if self.cancelled_by is None or not thread.is_alive():
                    continue
                deadline = deadline or self._clock.monotonic_seconds() + GRACE_SECONDS
                self._interrupt()
                if self._clock.monotonic_seconds() > deadline:
                    _LOGGER.error("The job did not end after it was cancelled.")
                    os._exit(128 + self.cancelled_by)
            if self._session is not None:
                self._session.stop()
        assert self._result is not None
        return self._result

    def _work(self) -> None:
        registry = default_registry()
        register(registry)
        executor: Executor = SparkExecutor(self._make_session, storage_options=self._storage_options)
        if self._spec.engine == "inline" and self._spec.kind != LOAD_KIND:
            executor = InlineExecutor()
        context = JobContext(
            executor=executor,
            progress=self._progress,
            clock=self._clock,
            storage_options=self._storage_options,
        )
        self._result = run_job(self._spec, context, registry=registry)

    def _make_session(self) -> SparkSession:
        session = get_session(
            self._remote,
            master=self._master,
            conf=handed_conf(with_jvm=self._remote is None),
            app_name=self._app_name,
        )
        self._session = session
        if self.cancelled_by is not None:
            raise JobError("The job was cancelled before it started to work.", fix="Run the job again.")
        return session

    def _interrupt(self) -> None:
        if self._session is not None:
            with contextlib.suppress(Exception):  # repeated until the job has ended
                self._session.interruptAll()

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        def note(number: int, frame: FrameType | None) -> None:
            self.cancelled_by = number

        previous_handlers = {number: signal.signal(number, note) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in previous_handlers.items():
                signal.signal(number, handler)
