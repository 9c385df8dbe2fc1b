"""The files of one lease: numbered, created only if absent, never changed; the highest number counts.

They lie below `_deltaward/`, the one directory of a table that is ours alone. Nothing but
`put_if_absent` is needed for deciding who has a number. An answer that is unclear is settled by reading the
number back, as for a commit. Times are the store's: when it wrote a file, compared with when it wrote
another.
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
"""Holds our own artefacts; a vacuum, ours or another engine's, leaves it alone."""

FORMAT_VERSION: Final = 1

STORE_TIME_GRAIN_MS: Final = 1_000
"""Object stores tell times in whole seconds, so two times may seem this much further apart."""

_NAME: Final = re.compile(r"(\d{20})\.json")
_CLOCK_NAME: Final = "clock"
_TRIES: Final = 6
_GREATEST = 1 << 53
_FIRST_PAUSE_SECONDS: Final = 0.05
_REFUSALS: Final = (StorePermissionError, UnsafeStoreError, NameBlockedError, WriteRefusedError)

_log = logging.getLogger(__name__)


class LeaseState(StrEnum):
    """What a file says of its holder."""

    HELD = "held"
    RELEASED = "released"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRecord:
    """The content of a file.

    Attributes:
        fence: the fencing number, which is that of the holder's first file; it grows with each new holder.
        holder: who, for people.
        token: tells holders apart; no two acquisitions have the same.
        nonce: tells the files of one holder apart; an older one must not pass for the one just written.
        ttl_ms: how long after its writing the file counts.
        version, table_id: what a reader's pin keeps; None in a lease.
    """

    fence: int
    holder: str
    token: str
    nonce: str
    ttl_ms: int
    state: LeaseState = LeaseState.HELD
    version: int | None = None
    table_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseFile:
    """A file as it is in the store; `modified_ms` is the store's time of writing."""

    path: str
    number: int
    modified_ms: int
    record: LeaseRecord

    def remaining_ms(self, store_now_ms: int) -> int:
        """How long it counts at a time of the store, with that time's grain; zero or less when it ended."""
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
        """The path of a number."""
        return f"{self.directory}/{number:020d}.json"

    def newest(self) -> LeaseFile | None:
        """The file with the highest number, or None when there is none. One listing and one read.

        Raises:
            LeaseFileError: it is damaged or of a newer format.
            LeaseError: the store's listings lag, so nobody could tell which file is the newest.
            StorageError: the store fails.
        """
        if not self.store.consistent_listing:
            raise LeaseError(
                f"There are no leases on {self.store.uri!r}.",
                cause="Its listings lag behind what was written, so two holders could miss each other.",
                fix="Leave the lease out; commits are safe without one.",
            )
        for attempt in range(_TRIES):
            listed = self._listed()
            if not listed:
                return None
            try:
                return read_lease_file(self.store, listed[-1])
            except ObjectNotFoundError:
                # Deleted since, so there is a newer one.
                self._pause(attempt)
        raise StorageError(f"The newest file in {self.directory!r} changes faster than it can be read.")

    def create(self, number: int, record: LeaseRecord) -> bool:
        """Take a number, unless another holder has it. One write; more when the answer is unclear.

        Returns:
            True when the number has this content, whichever attempt wrote it.

        Raises:
            StorageError: refused or failed, or it cannot be told whether the number was taken.
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
                pass  # The same bytes again: a first write that comes late is still this one's.
            except StorageError as error:
                ambiguous, failure = True, error
            self._pause(attempt)
        if certain and failure is not None:
            raise failure
        raise AmbiguousWriteError(
            f"Whether {path!r} was written cannot be told.",
            cause=str(failure),
            fix="Try again; should it have been written, it ends by itself.",
        )

    def store_time_ms(self) -> int:
        """What time it is for the store: that of an object just written. Two requests."""
        path = f"{self.directory}/{_CLOCK_NAME}.json"
        self.store.put(path, json.dumps({"formatVersion": FORMAT_VERSION}).encode())
        return self.store.head(path).modified_ms

    def delete_below(self, number: int) -> None:
        """Delete the files of lower numbers, the oldest first; what cannot be deleted stays."""
        try:
            for info in self._listed():
                if _number(info) < number:
                    self.store.delete(info.path)
        except DeltaError as error:
            _log.warning("old lease files left behind", extra={"path": self.directory, "error": str(error)})

    def _listed(self) -> Sequence[ObjectInfo]:
        found = [info for info in self.store.list_directory(self.directory) if is_lease_file(info.path)]
        beyond = next((info for info in found if _number(info) > _GREATEST), None)
        if beyond is not None:
            raise LeaseFileError(
                f"The file {self.store.uri}/{beyond.path} has a number that no lease gets to.",
                cause="Numbers go up by one.",
                fix="Delete the file.",
            )
        return found

    def _pause(self, attempt: int) -> None:
        self.clock.sleep(_FIRST_PAUSE_SECONDS * 2**attempt)


def is_lease_file(path: str) -> bool:
    """Whether a path has the name of a numbered file."""
    return _NAME.fullmatch(path.rpartition("/")[2]) is not None


def read_lease_file(store: LogStore, info: ObjectInfo) -> LeaseFile:
    """Read a listed file. One request.

    Raises:
        LeaseFileError: it is damaged or of a newer format.
        ObjectNotFoundError: it is gone.
        StorageError: the store fails.
    """
    record = record_of_bytes(store.read(info.path), path=f"{store.uri}/{info.path}")
    return LeaseFile(path=info.path, number=_number(info), modified_ms=info.modified_ms, record=record)


def record_to_bytes(record: LeaseRecord) -> bytes:
    """The content as JSON."""
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
    }
    return json.dumps({key: value for key, value in document.items() if value is not None}).encode()


def record_of_bytes(data: bytes, *, path: str) -> LeaseRecord:
    """Read what `record_to_bytes` wrote.

    Raises:
        LeaseFileError: it is damaged or of a newer format; `path` is in the message.
    """
    try:
        document = json.loads(data)
        format_version = _whole(document["formatVersion"])
        if format_version > FORMAT_VERSION:
            raise LeaseFileError(
                f"The file {path!r} has format {format_version}.",
                cause=f"This version of deltaward knows formats up to {FORMAT_VERSION}.",
                fix="Upgrade deltaward, or delete the file when nobody needs what it holds.",
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
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise LeaseFileError(
            f"The file {path!r} is damaged.",
            cause=f"{type(error).__name__}: {error}",
            fix="Delete the file when nobody needs what it holds.",
        ) from error


def _number(info: ObjectInfo) -> int:
    return int(info.path.rpartition("/")[2].partition(".")[0])


def _whole(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= _GREATEST:
        raise ValueError("a number is none, or beyond what one can be")
    return value


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    value.encode()  # half a character is none
    return value
