"""The files of one lease: numbered, created only if absent, never changed. The highest number counts.

They are below `_deltaward/`, the only directory of a table that belongs to this library alone.
`put_if_absent` alone decides which process owns a number. When the answer of a write is unclear, the number
is read back, as for a commit. All times are the store's write times, and are only compared with each other.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from delta_core.clock import Clock
from delta_core.errors import (
    AmbiguousWriteError,
    DeltaError,
    LeaseError,
    LeaseFileError,
    NameBlockedError,
    NotWrittenError,
    ObjectExistsError,
    ObjectNotFoundError,
    StorageError,
    StorePermissionError,
    UnsafeStoreError,
    WriteRefusedError,
)
from delta_core.storage.log_store import LogStore, ObjectInfo

RESERVED_DIRECTORY: Final = "_deltaward"
"""The directory of this library's own files. No vacuum touches it, not even that of another engine."""

FORMAT_VERSION: Final = 1

STORE_TIME_GRAIN_MS: Final = 1_000
"""Object stores have times in whole seconds, so two times may be this much further apart than they seem."""

_NAME: Final = re.compile(r"(\d{20})\.json")
_CLOCK_NAME: Final = "clock"
_TRIES: Final = 6
_GREATEST = 1 << 53
_FIRST_PAUSE_SECONDS: Final = 0.05
_REFUSALS: Final = (StorePermissionError, UnsafeStoreError, NameBlockedError, WriteRefusedError)

_log = logging.getLogger(__name__)


class LeaseState(StrEnum):
    """The state of the holder that a file records."""

    HELD = "held"
    RELEASED = "released"


class Following(StrEnum):
    """The files that a stream needs, which has read a table up to the version that it pins."""

    SNAPSHOT = "snapshot"
    """The files of the version, and those that later commits add."""
    COMMITS = "commits"
    """The files that later commits add, also if they are no longer live."""
    CHANGES = "changes"
    """The files that later commits add or remove."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRecord:
    """The content of a lease file.

    Attributes:
        fence: the fencing number: the number of the holder's first file. It increases with each new holder.
        holder: the name of the holder, shown to people.
        token: distinguishes holders; unique for each acquisition.
        nonce: distinguishes the files of one holder, so that an older file is not taken for a new one.
        ttl_ms: how long the file is valid after it was written.
        version, table_id: the version and the table of a reader's pin; None in a lease.
        following: for the pin of a stream, the files that it needs besides: a value of `Following`.
    """

    fence: int
    holder: str
    token: str
    nonce: str
    ttl_ms: int
    state: LeaseState = LeaseState.HELD
    version: int | None = None
    table_id: str | None = None
    following: Following | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseFile:
    """A lease file in the store; `modified_ms` is the store's time of writing."""

    path: str
    number: int
    modified_ms: int
    record: LeaseRecord

    def remaining_ms(self, store_now_ms: int) -> int:
        """The remaining validity at a time of the store, plus the time grain. Zero or less when expired."""
        if self.record.state is LeaseState.RELEASED:
            return 0
        return self.modified_ms + self.record.ttl_ms + STORE_TIME_GRAIN_MS - store_now_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseFiles:
    """The numbered files of one directory."""

    store: LogStore
    directory: str
    clock: Clock

    def path(self, number: int) -> str:
        """The path of the file with a number."""
        return f"{self.directory}/{number:020d}.json"

    def newest(self) -> LeaseFile | None:
        """The file with the highest number, or None without files. One listing and one read.

        Raises:
            LeaseFileError: the file is damaged or has a newer format.
            LeaseError: the store's listings lag, so the newest file is not known.
            StorageError: the store failed.
        """
        if not self.store.consistent_listing:
            raise LeaseError(
                f"Leases are not possible on {self.store.uri!r}.",
                cause="Listings of this store lag behind writes, so two holders could miss each other.",
                fix="Do not use a lease. Commits are safe without one.",
            )
        for attempt in range(_TRIES):
            listed = self._listed()
            if not listed:
                return None
            try:
                return read_lease_file(self.store, listed[-1])
            except ObjectNotFoundError:
                # The file was deleted since the listing, so there is a newer one.
                self._pause(attempt)
        raise StorageError(
            f"The newest file in {self.directory!r} changes faster than it can be read.",
            fix="Repeat the operation.",
        )

    def create(self, number: int, record: LeaseRecord) -> bool:
        """Create the file with this number, unless another holder has created it.

        Cost: one write. If the store's answer is unclear, also a read, and further writes.

        Returns:
            True when the number has this content, regardless of the attempt that wrote it.

        Raises:
            StorageError: the write was refused or failed, or its outcome is not known.
        """
        path, data = self.path(number), record_to_bytes(record)
        ambiguous, certain = False, True
        failure: StorageError | None = None
        for attempt in range(_TRIES):
            try:
                self.store.put_if_absent(path, data)
            except NotWrittenError as error:
                failure = error
                if certain:
                    self._pause(attempt)
                    continue
            except ObjectExistsError as error:
                certain, failure = False, error
            except _REFUSALS:
                if not ambiguous:
                    raise
            except StorageError as error:
                ambiguous, certain, failure = True, False, error
            else:
                return True
            try:
                return self.store.read(path) == data
            except ObjectNotFoundError:
                pass  # Write the same bytes again: a late first write then has the same content.
            except StorageError as error:
                ambiguous, failure = True, error
            self._pause(attempt)
        if certain and failure is not None:
            raise failure
        raise AmbiguousWriteError(
            f"It is not known whether {path!r} was written.",
            cause=str(failure),
            fix="Repeat the operation. If the file was written, its lease or pin expires.",
        )

    def store_time_ms(self) -> int:
        """The store's current time: the modification time of an object that is written now. Two requests."""
        path = f"{self.directory}/{_CLOCK_NAME}.json"
        self.store.put(path, json.dumps({"formatVersion": FORMAT_VERSION}).encode())
        return self.store.head(path).modified_ms

    def delete_below(self, number: int) -> None:
        """Delete the files with numbers below `number`, oldest first. Files that cannot be deleted stay."""
        try:
            for info in self._listed():
                if _number(info) < number:
                    self.store.delete(info.path)
        except DeltaError as error:
            _log.warning(
                "Old lease files were not deleted.", extra={"path": self.directory, "error": str(error)}
            )

    def _listed(self) -> Sequence[ObjectInfo]:
        infos = [info for info in self.store.list_directory(self.directory) if is_lease_file(info.path)]
        beyond = next((info for info in infos if _number(info) > _GREATEST), None)
        if beyond is not None:
            raise LeaseFileError(
                f"The file {self.store.uri}/{beyond.path} has a number that no lease reaches.",
                cause="Numbers increase by one.",
                fix="Delete the file.",
            )
        return infos

    def _pause(self, attempt: int) -> None:
        self.clock.sleep(_FIRST_PAUSE_SECONDS * 2**attempt)


def is_lease_file(path: str) -> bool:
    """Whether a path has the name of a numbered file."""
    return _NAME.fullmatch(path.rpartition("/")[2]) is not None


def read_lease_file(store: LogStore, info: ObjectInfo) -> LeaseFile:
    """Read a listed file. One request.

    Raises:
        LeaseFileError: the file is damaged or has a newer format.
        ObjectNotFoundError: the file does not exist.
        StorageError: the store failed.
    """
    record = record_of_bytes(store.read(info.path), path=f"{store.uri}/{info.path}")
    return LeaseFile(path=info.path, number=_number(info), modified_ms=info.modified_ms, record=record)


def record_to_bytes(record: LeaseRecord) -> bytes:
    """The record as JSON."""
    document = {
        "formatVersion": FORMAT_VERSION,
        "fence": record.fence,
        "holder": record.holder,
        "token": record.token,
        "nonce": record.nonce,
        "ttlMs": record.ttl_ms,
        "state": record.state.value,
        "version": record.version,
        "tableId": record.table_id,
        "following": None if record.following is None else record.following.value,
    }
    return json.dumps({key: value for key, value in document.items() if value is not None}).encode()


def record_of_bytes(data: bytes, *, path: str) -> LeaseRecord:
    """Parse the output of `record_to_bytes`.

    Raises:
        LeaseFileError: the content is damaged or has a newer format; the message contains `path`.
    """
    try:
        document = json.loads(data)
        format_version = _whole(document["formatVersion"])
        if format_version > FORMAT_VERSION:
            raise LeaseFileError(
                f"The file {path!r} has format {format_version}.",
                cause=f"This version of deltaward knows formats up to {FORMAT_VERSION}.",
                fix="Upgrade deltaward, or delete the file when its lease or pin is not in use.",
            )
        return LeaseRecord(
            fence=_whole(document["fence"]),
            holder=_string(document["holder"]),
            token=_string(document["token"]),
            nonce=_string(document["nonce"]),
            ttl_ms=_whole(document["ttlMs"]),
            state=LeaseState(document["state"]),
            version=None if document.get("version") is None else _whole(document["version"]),
            table_id=None if document.get("tableId") is None else _string(document["tableId"]),
            following=None if document.get("following") is None else Following(document["following"]),
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise LeaseFileError(
            f"The file {path!r} is damaged.",
            cause=f"{type(error).__name__}: {error}",
            fix="Delete the file when its lease or pin is not in use.",
        ) from error


def _number(info: ObjectInfo) -> int:
    return int(info.path.rpartition("/")[2].partition(".")[0])


def _whole(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= _GREATEST:
        raise ValueError("a number is not an integer or out of range")
    return value


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    value.encode()  # raises for a lone surrogate
    return value
