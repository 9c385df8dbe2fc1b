"""The files of a run in a remote store, for a `work_dir` that is a URI.

A driver in another process reads and writes files in a private temporary directory on this machine. The
specification, the state and the result are copied to the store, where every worker can read them.
"""

from __future__ import annotations

import json
import logging
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from delta_airflow.hooks.run_state import RunState
from delta_airflow.runners.run_directory import MAX_RESULT_BYTES, RunDirectory, path_component
from delta_core.errors import DeltaError, JobFailedError, ObjectNotFoundError
from delta_core.jobs import JobResult, result_from_json
from delta_core.storage import LogStore, open_store
from delta_core.storage.remote_uri import RemoteUri, parse_remote_uri

_RESULT = "result.json"
_STATE = "state.json"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun(RunDirectory):
    """The directory of one try. `path` is its temporary local part.

    Attributes:
        store: the store, whose root is the try's directory in the `work_dir`.
    """

    store: LogStore

    @classmethod
    def begin(
        cls,
        work_dir: str,
        *,
        dag_id: str,
        run_id: str,
        task_id: str,
        map_index: int,
        try_number: int,
        job_id: str,
        storage_options: Mapping[str, str],
    ) -> StoredRun:
        """Create the temporary directory, readable only by its owner. Makes no request.

        Raises:
            ConfigurationError: the store cannot be opened with these options.
        """
        parts = (dag_id, run_id, task_id, str(map_index), f"try-{try_number}-{job_id}")
        root = parse_remote_uri(work_dir)
        # HDFS allows no colons in names, but run ids contain times.
        below = "/".join(path_component(part).replace(":", "%3A") for part in parts)
        place = RemoteUri(
            scheme=root.scheme, authority=root.authority, path=f"{root.path}/{below}".lstrip("/")
        )
        store = open_store(str(place), storage_options=storage_options)
        return cls(path=Path(tempfile.mkdtemp(prefix="deltaward-run-")), store=store)

    @property
    def result_uri(self) -> str:
        """The result's URI in the store."""
        return f"{self.store.uri}/{_RESULT}"

    @property
    def place(self) -> str:
        """The URI of the try's directory."""
        return self.store.uri

    def write(self, name: str, text: str) -> None:
        """Write one file, locally and in the store.

        Raises:
            StorageError: the write to the store failed.
        """
        RunDirectory.write(self, name, text)
        self.store.put(name, text.encode())

    def write_state(self, state: RunState) -> None:
        """Write the state. A failed write to the store does not end the run: only the result matters."""
        try:
            RunDirectory.write_state(self, state)
        except DeltaError as error:
            _log.warning("The state of the run could not be written to %s: %s", self.place, error)

    def read_result(self, *, job_id: str) -> JobResult:
        """Read the result that the driver has written locally, and copy it to the store.

        Raises:
            JobFailedError: the result is missing, damaged, or belongs to another job.
            StorageError: the write to the store failed.
        """
        result = RunDirectory.read_result(self, job_id=job_id)
        self.store.put(_RESULT, self.result_path.read_bytes())
        return result

    def discard(self) -> None:
        """Delete the temporary local part."""
        shutil.rmtree(self.path, ignore_errors=True)


def read_stored_result(result_uri: str, *, storage_options: Mapping[str, str]) -> JobResult:
    """Read the result at a URI in a store. Costs two requests.

    Raises:
        JobFailedError: the result is missing or damaged.
        StorageError: the store does not answer, or refuses the request.
    """
    data = _read(result_uri, _RESULT, storage_options)
    try:
        return result_from_json(data.decode())
    except (DeltaError, ValueError) as error:
        raise JobFailedError(f"The job's result {result_uri} cannot be read.", cause=str(error)) from error


def read_stored_state(result_uri: str, *, storage_options: Mapping[str, str]) -> RunState:
    """Read the state that is stored beside a result. Costs two requests.

    Raises:
        JobFailedError: the state is missing or damaged.
        StorageError: the store does not answer, or refuses the request.
    """
    data = _read(result_uri, _STATE, storage_options)
    try:
        return RunState.from_json(json.loads(data))
    except ValueError as error:
        raise JobFailedError(
            f"The state of the run with the result {result_uri} cannot be read.",
            cause=str(error),
            fix="Read the run's result instead. The task's log also shows how the run ended.",
        ) from error


def _read(result_uri: str, name: str, storage_options: Mapping[str, str]) -> bytes:
    """Read a file beside a result, up to the maximum size of a result."""
    directory = result_uri.rpartition("/")[0]
    store = open_store(directory, storage_options=storage_options)
    try:
        if store.head(name).size_bytes > MAX_RESULT_BYTES:
            raise JobFailedError(
                f"The file {name} of the run is too large.",
                cause=f"It has more than {MAX_RESULT_BYTES} bytes.",
            )
        return store.read(name)
    except ObjectNotFoundError as error:
        raise JobFailedError(
            f"The run has no {name}.",
            cause=f"{directory} does not contain the file.",
            fix="Pass the result_uri of a run that has ended.",
        ) from error
