"""The directory with the specification, the result and the state of one try of a task.

`<work_dir>/<dag>/<run>/<task>/<map index>/try-<n>-<job id>/{spec,result,state}.json`. The files are the audit
trail of a run and the interface to a driver in another process. They contain no secrets.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from delta_airflow.hooks.run_state import RunState
from delta_core.errors import DeltaError, JobFailedError
from delta_core.jobs import JobResult, JobSpec, result_from_json, result_to_json, spec_to_json

MAX_RESULT_BYTES = 256 << 20
"""A larger result is rejected, because reading it could exhaust the memory of the worker."""


def path_component(name: str) -> str:
    """A string as one directory name: without a separator, and never empty, `.` or `..`."""
    quoted = quote(name, safe="+=@,:~ -_").replace(" ", "_")
    return quoted.replace(".", "%2E") if set(quoted) <= {"."} else quoted


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDirectory:
    """The directory of one try."""

    path: Path

    @classmethod
    def create(
        cls,
        work_dir: Path,
        *,
        dag_id: str,
        run_id: str,
        task_id: str,
        map_index: int,
        try_number: int,
        job_id: str,
    ) -> RunDirectory:
        """Create the directory, readable only by its owner.

        Raises:
            JobFailedError: the directory cannot be created.
        """
        parts = (dag_id, run_id, task_id, str(map_index), f"try-{try_number}-{job_id}")
        path = work_dir.joinpath(*(path_component(part) for part in parts))
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise JobFailedError(
                "The run directory cannot be created.",
                cause=f"{error.strerror} at {path}.",
                fix="Set the connection's extra `work_dir` to a directory that the worker can write.",
            ) from error
        return cls(path=path)

    @property
    def spec_path(self) -> Path:
        """The path of the JobSpec for the driver."""
        return self.path / "spec.json"

    @property
    def result_path(self) -> Path:
        """The path of the JobResult. The process that runs the job writes it."""
        return self.path / "result.json"

    @property
    def state_path(self) -> Path:
        """The path of the RunState, which is rewritten during the run."""
        return self.path / "state.json"

    @property
    def result_uri(self) -> str:
        """`result_path` as a `file:` URI, for JobSpec and XCom."""
        return self.result_path.as_uri()

    @property
    def place(self) -> str:
        """The permanent location of the files, for messages."""
        return str(self.path)

    def write_spec(self, spec: JobSpec) -> None:
        """Write the specification, replacing an existing one."""
        self.write(self.spec_path.name, spec_to_json(spec))

    def write_result(self, result: JobResult) -> None:
        """Write the result, replacing an existing one."""
        self.write(self.result_path.name, result_to_json(result))

    def write_state(self, state: RunState) -> None:
        """Write the state, replacing an existing one."""
        self.write(self.state_path.name, json.dumps(state.to_json(), sort_keys=True))

    def write(self, name: str, text: str) -> None:
        """Write one file atomically."""
        write_whole(self.path / name, text)

    def discard(self) -> None:
        """End the use of the directory. The files are kept."""

    def read_state(self) -> RunState:
        """The state that was written last.

        Raises:
            JobFailedError: the state is missing or damaged.
        """
        return read_state_file(self.state_path)

    def read_result(self, *, job_id: str) -> JobResult:
        """The result of the job `job_id`.

        Raises:
            JobFailedError: the result is missing, damaged, or of a different job.
        """
        result = read_result_file(self.result_path)
        if result.job_id != job_id:
            raise JobFailedError(
                "The result file belongs to a different job.",
                cause=f"It contains the job id {result.job_id}, not {job_id}.",
            )
        return result


def read_result_file(path: Path) -> JobResult:
    """Read one result file.

    Raises:
        JobFailedError: the file is missing or damaged.
    """
    try:
        if path.stat().st_size > MAX_RESULT_BYTES:
            raise JobFailedError(
                f"The result file {path} is too large.", cause=f"It has more than {MAX_RESULT_BYTES} bytes."
            )
        return result_from_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise JobFailedError(
            "The job wrote no result.", cause=f"{path} does not exist.", fix="Read the log of the task."
        ) from error
    except DeltaError as error:
        raise JobFailedError(f"The job's result {path} cannot be read.", cause=str(error)) from error
    except (OSError, ValueError) as error:
        raise JobFailedError(f"The job's result {path} cannot be read.", cause=str(error)) from error


def read_state_file(path: Path) -> RunState:
    """Read one file with a run's state.

    Raises:
        JobFailedError: the file is missing or damaged.
    """
    try:
        return RunState.from_json(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise JobFailedError(
            f"The state {path} of a run cannot be read.",
            cause=str(error),
            fix="Check that the worker can read the file. The task's log also shows how the run ended.",
        ) from error


def write_whole(path: Path, text: str) -> None:
    """Write a file atomically, so that a reader (the driver, an audit) never reads a partial file."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)
