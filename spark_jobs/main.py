"""The program that runs a job on Spark: `python -m spark_jobs.main --spec FILE --result FILE`.

It is also the application of `spark-submit`. It reads a JSON JobSpec and writes a JSON JobResult. Progress
events are lines on standard output. Storage options come from the variable DELTAWARD_STORAGE_OPTIONS. The
exit code is 0 only when the job succeeded.
"""

from __future__ import annotations

from spark_jobs.watchdog import exit_with_parent

if __name__ == "__main__":
    # Before slow imports: a driver whose parent process has ended must not continue and commit.
    exit_with_parent()

import argparse
import logging
import os
import signal
import sys
import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from delta_core.cli.option_string import ENVIRONMENT_VARIABLE, options_from_text
from delta_core.errors import DeltaError
from delta_core.execution.progress import ProgressSink
from delta_core.execution.sinks import JsonLinesSink, TeeSink
from delta_core.jobs import JobErrorInfo, JobResult, JobStatus, result_to_json, spec_from_json
from spark_jobs.cancellable_job import CancellableJob

EVENT_PREFIX = "DELTAWARD_EVENT "

EXIT_SUCCEEDED = 0
EXIT_FAILED = 1
EXIT_BAD_SPEC = 2
EXIT_UNKNOWN = 3
"""It is unknown whether the commit landed: look up its transaction id before running the job again."""

_EXIT_CODES = {
    JobStatus.SUCCEEDED: EXIT_SUCCEEDED,
    JobStatus.FAILED: EXIT_FAILED,
    JobStatus.UNKNOWN: EXIT_UNKNOWN,
}


def main(argv: Sequence[str] | None = None, *, sinks: Sequence[ProgressSink] = ()) -> int:
    """Run the job that the arguments name.

    SIGTERM and SIGINT cancel the job's Spark work: the written files are deleted, and no result is written. A
    job that is already committing completes and writes its result.

    Args:
        argv: the command line without the program's name.
        sinks: further sinks for progress events, in addition to standard output.

    Returns:
        The exit code: 0 when the job succeeded, 1 when it failed, 2 when the spec cannot be read, 3 when it
        is unknown whether the commit landed, 130 or 143 when SIGINT or SIGTERM cancelled the job.
    """
    arguments = _parser().parse_args(argv)
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    logging.getLogger("py4j").setLevel(logging.WARNING)
    try:
        # Removed from the environment, so that child processes do not inherit secrets.
        options = options_from_text(os.environ.pop(ENVIRONMENT_VARIABLE, ""))
        spec = spec_from_json(arguments.spec.read_text(encoding="utf-8"))
    except (DeltaError, OSError, UnicodeDecodeError) as error:
        _write_result(arguments.result, _bad_spec(error))
        print(f"The job specification cannot be read: {error}", file=sys.stderr)
        return EXIT_BAD_SPEC
    spec = spec if spec.job_id else replace(spec, job_id=str(uuid.uuid4()))
    progress = TeeSink([JsonLinesSink(sys.stdout, prefix=EVENT_PREFIX), *sinks])
    job = CancellableJob(
        spec,
        remote=arguments.remote,
        master=arguments.master,
        app_name=arguments.app_name,
        storage_options=options,
        progress=progress,
    )
    result = job.run()
    if job.cancelled_by is not None and result.status is not JobStatus.SUCCEEDED:
        print(f"The job was cancelled by {signal.Signals(job.cancelled_by).name}.", file=sys.stderr)
        return 128 + job.cancelled_by
    _write_result(arguments.result, result)
    if result.error is not None:
        print(f"{result.error.code}: {result.error.message}", file=sys.stderr)
    return _EXIT_CODES[result.status]


def _write_result(path: Path, result: JobResult) -> None:
    """Write the result atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with scratch.open("w", encoding="utf-8") as target:
            target.write(result_to_json(result))
            target.flush()
            os.fsync(target.fileno())
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)


def _bad_spec(error: Exception) -> JobResult:
    code = error.code if isinstance(error, DeltaError) else "INVALID_JOB_SPEC"
    return JobResult(
        job_id="",
        kind="",
        status=JobStatus.FAILED,
        error=JobErrorInfo(code=code, message=str(error), retryable=False),
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m spark_jobs.main", description=__doc__)
    parser.add_argument("--spec", type=Path, required=True, help="JobSpec as JSON")
    parser.add_argument("--result", type=Path, required=True, help="file for the JobResult as JSON")
    parser.add_argument("--remote", help="Spark Connect URL, sc://host:port")
    parser.add_argument("--master", help="Spark master; by default that of spark-submit, or local[*]")
    parser.add_argument("--app-name", help="name in the Spark UI; by default deltaward and the job's kind")
    return parser


if __name__ == "__main__":
    sys.exit(main())
