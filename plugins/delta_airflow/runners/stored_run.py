"""A run's files in a store that is not this machine's: `work_dir` is a URI.

The files that a driver in another process reads and writes are in a private temporary directory of this
machine; spec, state and result are copied to the store, where every worker finds them.
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
from delta_core.jobs.codec import result_from_json
from delta_core.jobs.job_result import JobResult
from delta_core.storage.log_store import LogStore
from delta_core.storage.open import open_store
from delta_core.storage.remote_uri import RemoteUri, parse_remote_uri

_RESULT = "result.json"
_STATE = "state.json"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun(RunDirectory):
    """The directory of one try: `path` is its temporary part.

    Attributes:
        store: rooted at the try's place in the `work_dir`.
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
        """Make the temporary directory, readable by its owner only. Makes no request.

        Raises:
            ConfigurationError: the store cannot be opened with these options.
        """
        parts = (dag_id, run_id, task_id, str(map_index), f"try-{try_number}-{job_id}")
        root = parse_remote_uri(work_dir)
        # HDFS has no colons in its names, and runs have times in theirs.
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
        """Write one file, here and in the store.

        Raises:
            StorageError: the store did not take it.
        """
        RunDirectory.write(self, name, text)
        self.store.put(name, text.encode())

    def write_state(self, state: RunState) -> None:
        """Write the state. A store that does not take it ends no run: what counts is the result."""
        try:
            RunDirectory.write_state(self, state)
        except DeltaError as error:
            _log.warning("The run's state was not written to %s: %s", self.place, error)

    def read_result(self, *, job_id: str) -> JobResult:
        """The result that the driver left here; it is in the store afterwards.

        Raises:
            JobFailedError: it is missing, damaged, or another job's.
            StorageError: the store did not take it.
        """
        result = RunDirectory.read_result(self, job_id=job_id)
        self.store.put(_RESULT, self.result_path.read_bytes())
        return result

    def discard(self) -> None:
        """Delete the temporary part."""
        shutil.rmtree(self.path, ignore_errors=True)


def read_stored_result(result_uri: str, *, storage_options: Mapping[str, str]) -> JobResult:
    """The result at a URI in a store. Two requests.

    Raises:
        JobFailedError: it is missing or damaged.
        StorageError: the store does not answer, or refuses.
    """
    data = _read(result_uri, _RESULT, storage_options)
    try:
        return result_from_json(data.decode())
    except (DeltaError, ValueError) as error:
        raise JobFailedError("The job's result cannot be read", cause=str(error)) from error


def read_stored_state(result_uri: str, *, storage_options: Mapping[str, str]) -> RunState:
    """The state beside a result in a store. Two requests.

    Raises:
        JobFailedError: it is missing or damaged.
        StorageError: the store does not answer, or refuses.
    """
    data = _read(result_uri, _STATE, storage_options)
    try:
        return RunState.from_json(json.loads(data))
    except ValueError as error:
        raise JobFailedError("The run's state cannot be read", cause=str(error)) from error


def _read(result_uri: str, name: str, storage_options: Mapping[str, str]) -> bytes:
    """One file beside a result, of bounded size."""
    directory = result_uri.rpartition("/")[0]
    store = open_store(directory, storage_options=storage_options)
    try:
        if store.head(name).size_bytes > MAX_RESULT_BYTES:
            raise JobFailedError(
                f"The file {name} of the run is too large", cause=f"more than {MAX_RESULT_BYTES} bytes"
            )
        return store.read(name)
    except ObjectNotFoundError as error:
        raise JobFailedError(f"The run has no {name}", cause=f"{directory} does not hold it") from error
