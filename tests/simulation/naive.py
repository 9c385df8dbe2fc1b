"""Committers that get it wrong, each in one way: the judge must find every one of them out."""

from __future__ import annotations

from enum import StrEnum
from uuid import UUID

import orjson

from delta_core.errors import CommitStateUnknownError, ObjectExistsError, ObjectNotFoundError, StorageError
from delta_core.log.log_path import LogFileKind, LogPath, commit_path
from delta_core.transaction.commit_result import CommitResult, Committed, Unknown
from tests.simulation.history import Job
from tests.simulation.judge import parse_commit, txn_id_of
from tests.simulation.programs import Program

TRIES = 20


class Mistake(StrEnum):
    """What a committer believes."""

    EXISTS_IS_ANOTHERS = "the name is taken, so another writer has it: on to the next version"
    ERROR_IS_FAILURE = "an error, so nothing was written: run the job again"
    NOT_FOUND_IS_FREE = "the version is not there, so it is lost: on to the next version"
    NONE = "none of these"


class NaiveProgram(Program):
    """Every job that writes is an append, committed with the mistake."""

    mistake = Mistake.NONE

    def _append(self, job: Job) -> CommitResult:
        txn_id = str(UUID(int=self._random.getrandbits(128), version=4))
        self._running = {"txn_id": txn_id}
        add = self._new_file(job)
        fields = {"path": add.path, "partitionValues": add.partition_values, "size": add.size_bytes}
        lines: list[object] = [
            {"commitInfo": {"txnId": txn_id, "isBlindAppend": True}},
            {"txn": {"appId": job.name, "version": 1}},
            {"add": {**fields, "modificationTime": add.modification_time_ms, "dataChange": True}},
        ]
        data = b"".join(orjson.dumps(line) + b"\n" for line in lines)
        version = self._newest() + 1
        for _ in range(TRIES):
            exists = False
            try:
                self._store.put_if_absent(commit_path(version), data)
            except ObjectExistsError:
                exists = True
            except StorageError:
                if self.mistake is Mistake.ERROR_IS_FAILURE:
                    raise
            else:
                return Committed(version=version, txn_id=txn_id)
            if exists and self.mistake is Mistake.EXISTS_IS_ANOTHERS:
                version += 1
                continue
            owner = self._owner(version)
            if owner == txn_id:
                return Committed(version=version, recovered=True, txn_id=txn_id)
            if owner is not None or self.mistake is Mistake.NOT_FOUND_IS_FREE:
                version += 1
        error = CommitStateUnknownError("Tried often enough.")
        return Unknown(version=version, txn_id=txn_id, error=error)

    _change = _append
    _create = _append

    def _newest(self) -> int:
        names = [LogPath.parse(info.path) for info in self._store.list_directory("_delta_log")]
        return max((n.version for n in names if n is not None and n.kind is LogFileKind.COMMIT), default=-1)

    def _owner(self, version: int) -> str | None:
        for _ in range(TRIES):
            try:
                return txn_id_of(parse_commit(self._store.read(commit_path(version))))
            except ObjectNotFoundError:
                return None
            except StorageError:
                continue
        return None


def program_with(mistake: Mistake) -> type[NaiveProgram]:
    """The committer that makes one mistake."""
    return type("NaiveProgram", (NaiveProgram,), {"mistake": mistake})
