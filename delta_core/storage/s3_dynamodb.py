"""S3 with commits that are decided in DynamoDB, compatible with delta-storage's S3DynamoDBLogStore.

For tables that Spark writes through that log store, and for S3-compatible stores without conditional writes.
The writer that creates the DynamoDB entry of a version owns the version, before the commit file exists.
Another writer or reader that finds an entry without its file copies the file to its place first.

Differences from delta-storage: an unclear answer about an entry is settled by reading the entry; the commit
file is written with a precondition and its bytes are compared, so that a writer that does not use DynamoDB
is detected; and a commit that is read by name is recovered, too.
"""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress

import pyarrow as pa

from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import (
    AmbiguousWriteError,
    NotWrittenError,
    ObjectExistsError,
    ObjectNotFoundError,
    StorageError,
    StorePermissionError,
    UnsafeStoreError,
    WriteRefusedError,
)
from delta_core.storage.directories import list_directories
from delta_core.storage.dynamodb_entries import DynamoDbEntries, Entry
from delta_core.storage.dynamodb_options import dynamodb_settings
from delta_core.storage.listed_files import ListedFiles, walk_batches
from delta_core.storage.log_store import LogStore, ObjectInfo, in_place_of, parent_store
from delta_core.storage.object_store import ObjectLogStore
from delta_core.storage.option_names import DYNAMODB_OPTIONS
from delta_core.storage.remote_uri import parse_remote_uri
from delta_core.storage.s3 import s3_clients, s3_options
from delta_core.storage.store_options import seconds_of

_LOG = "_delta_log"
_COMMIT = re.compile(rf"{_LOG}/(\d{{20}})\.json")
_COPY_TRIES = 3

_log = logging.getLogger(__name__)


def open_s3_or_dynamodb(uri: str, options: Mapping[str, str], clock: Clock = SYSTEM_CLOCK) -> LogStore:
    """The store of an S3 URI, with DynamoDB when the options or the environment select it. No request.

    Raises:
        InvalidUriError: the URI has no bucket.
        ConfigurationError: an option is not allowed, or DynamoDB's client does not support it.
    """
    root = parse_remote_uri(uri)
    checked = s3_options(options, own=DYNAMODB_OPTIONS)
    objects = ObjectLogStore(root, s3_clients(root.authority, checked), clock=clock)
    settings = dynamodb_settings(checked)
    if settings is None:
        return objects
    entries = DynamoDbEntries(
        table_name=settings.table_name,
        bucket=root.authority,
        path=root.path,
        client_arguments=settings.client_arguments,
        clock=clock,
        profile=settings.profile,
        spelling=settings.spelling,
        connect_seconds=seconds_of(checked.client.get("connect_timeout"), 10.0),
        read_seconds=seconds_of(checked.client.get("timeout"), 20.0),
    )
    return S3DynamoDbLogStore(objects, entries)


class S3DynamoDbLogStore:
    """Objects in S3. Commits have the order of their entries in DynamoDB."""

    def __init__(self, objects: LogStore, entries: DynamoDbEntries) -> None:
        self._objects = objects
        self._entries = entries

    def __repr__(self) -> str:
        return f"S3DynamoDbLogStore({self._objects!r}, {self._entries!r})"

    @property
    def uri(self) -> str:
        """The table root's canonical URI."""
        return self._objects.uri

    @property
    def consistent_listing(self) -> bool:
        """The value of S3: a listing of the log first recovers the newest entry."""
        return self._objects.consistent_listing

    @property
    def remote(self) -> bool:
        """True: each request is a round trip."""
        return True

    def parent(self) -> LogStore | None:
        """The store of the prefix above, with entries of its own; None for the whole bucket."""
        above = parent_store(self._objects)
        return None if above is None else S3DynamoDbLogStore(above, self._entries.above())

    # ------------------------------------------------------------ reads

    def read(self, path: str) -> bytes:
        """The whole object. A missing commit is looked up in DynamoDB. One request, then two more."""
        try:
            return self._objects.read(path)
        except ObjectNotFoundError:
            if not self._recovered(path):
                raise
        return self._objects.read(path)

    def head(self, path: str) -> ObjectInfo:
        """Size and time of one object, after the same recovery as `read`."""
        try:
            return self._objects.head(path)
        except ObjectNotFoundError:
            if not self._recovered(path):
                raise
        return self._objects.head(path)

    def list_directories(self, path: str) -> list[str]:
        """The names of the directories directly in a directory. Makes no request to DynamoDB."""
        return list_directories(self._objects, path)

    def list_directory(self, path: str, *, start_after: str | None = None) -> list[ObjectInfo]:
        """The objects directly in a directory. For the log, one more request recovers the newest entry."""
        if path == _LOG:
            latest = self._entries.latest()
            if latest is not None and not latest.complete:
                self._finish(latest)
        return self._objects.list_directory(path, start_after=start_after)

    def walk(self, path: str = "") -> Iterator[ObjectInfo]:
        """Every object in S3 below a directory."""
        return self._objects.walk(path)

    @in_place_of(walk)
    def walk_batches(self, path: str = "") -> Iterator[ListedFiles]:
        """As `walk`, in columns."""
        return walk_batches(self._objects, path)

    def open_input(self, path: str) -> pa.NativeFile:
        """A seekable reader of an object in S3. Does not recover a missing commit."""
        return self._objects.open_input(path)

    def open_whole(self, path: str) -> pa.NativeFile:
        """A seekable reader of the whole object, fetched as by `read`."""
        return pa.BufferReader(self.read(path))

    # ------------------------------------------------------------ writes

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Create the object, never replace it. Seven requests for a commit, else as for S3.

        Raises:
            ObjectExistsError: another writer has the version.
            AmbiguousWriteError: it is not known which writer has the version.
            WriteRefusedError: the previous version is neither in the log nor in DynamoDB; nothing was
                created.
            NotWrittenError: the write failed before the entry was requested; nothing was created.
        """
        commit = _COMMIT.fullmatch(path)
        if commit is None:
            self._objects.put_if_absent(path, data)
            return
        name = path.removeprefix(f"{_LOG}/")
        entry = Entry(file_name=name, temp_path=f".tmp/{name}.{uuid.uuid4()}", complete=False)
        with _before_entry(path):
            self._require_turn(path, int(commit.group(1)))
            self._put_temporary(entry, data)
        try:
            self._entries.create(entry)
        except AmbiguousWriteError:
            # When the entry exists, or arrives late, another process needs the bytes.
            raise
        except StorageError:
            # Another writer's entry exists, or the only attempt was refused.
            with suppress(StorageError):
                self._objects.delete(f"{_LOG}/{entry.temp_path}")
            raise
        # The commit is decided. The next reader or writer completes whatever fails from here on.
        try:
            self._copy(entry, data)
            self._entries.complete(entry)
        except (ObjectExistsError, _NotReadBackError):
            raise
        except StorageError as error:
            _log.warning("The commit is not completed yet.", extra={"path": path, "error": str(error)})

    def put(self, path: str, data: bytes) -> None:
        """Create or replace the object in S3."""
        self._objects.put(path, data)

    def delete(self, path: str) -> None:
        """Delete the object in S3; a missing one is not an error."""
        self._objects.delete(path)

    def open_output(self, path: str) -> AbstractContextManager[pa.NativeFile]:
        """A writer whose object appears in S3 when the context ends normally."""
        return self._objects.open_output(path)

    def persist(self, paths: Sequence[str]) -> None:
        """Check that the objects exist in S3, where acknowledged writes are durable."""
        self._objects.persist(paths)

    # ------------------------------------------------------------ helpers

    def _require_turn(self, path: str, version: int) -> None:
        """Check that the version is free and the previous version is complete."""
        if self._exists(path):
            raise ObjectExistsError(
                f"{path!r} exists already.", fix="Read it to see which writer created it."
            )
        if version == 0:
            old = self._entries.get(path.removeprefix(f"{_LOG}/"))
            if old is not None and old.complete:
                if self._exists(path):
                    # Another writer created it between the two checks: an entry is completed after its file.
                    raise ObjectExistsError(
                        f"{path!r} exists already.", fix="Read it to see which writer created it."
                    )
                raise WriteRefusedError(
                    "DynamoDB has entries of an earlier table at this location.",
                    cause=f"The entry of version 0 is complete, but {path!r} does not exist.",
                    fix="Remove the old table's entries from the DynamoDB table.",
                )
            return
        before = f"{_LOG}/{version - 1:020}.json"
        entry = self._entries.get(before.removeprefix(f"{_LOG}/"))
        if entry is not None and not entry.complete:
            self._finish(entry)
        elif not self._exists(before):
            raise WriteRefusedError(
                f"Version {version} cannot be written.",
                cause=f"{before!r} does not exist, and DynamoDB has no pending entry for it.",
                fix="Load the table again.",
            )

    def _put_temporary(self, entry: Entry, data: bytes) -> None:
        self._objects.put(f"{_LOG}/{entry.temp_path}", data)

    def _recovered(self, path: str) -> bool:
        """Recover a missing commit. Returns whether it was recovered."""
        if _COMMIT.fullmatch(path) is None:
            return False
        entry = self._entries.get(path.removeprefix(f"{_LOG}/"))
        if entry is None or entry.complete:
            return False
        self._finish(entry)
        return True

    def _finish(self, entry: Entry) -> None:
        """Copy the bytes of an entry to their final name, unless it exists, and complete the entry.

        Raises:
            StorageError: neither the final nor the temporary object exists.
        """
        path = f"{_LOG}/{entry.file_name}"
        if not self._exists(path):
            try:
                self._copy(entry, self._objects.read(f"{_LOG}/{entry.temp_path}"))
            except ObjectExistsError as error:
                _log.warning("The commit file has another writer's content.", extra={"error": str(error)})
            except ObjectNotFoundError as error:
                raise StorageError(
                    f"{path!r} cannot be completed.",
                    cause=f"DynamoDB has the commit, but its bytes, {entry.temp_path!r}, are missing.",
                    fix="Restore one of the two files from a backup.",
                ) from error
        with suppress(StorageError):
            self._entries.complete(entry)

    def _copy(self, entry: Entry, data: bytes) -> None:
        """Write the commit file, unless it exists already.

        Raises:
            ObjectExistsError: the file exists with other bytes, from a writer that does not use DynamoDB.
            AmbiguousWriteError: the file exists, but cannot be read.
        """
        path = f"{_LOG}/{entry.file_name}"
        for remaining in range(_COPY_TRIES - 1, -1, -1):
            try:
                self._create(path, data)
                return
            except ObjectExistsError:
                try:
                    stored = self._objects.read(path)
                except ObjectNotFoundError:
                    if not remaining:
                        raise
                except StorageError as error:
                    if not remaining:
                        raise _NotReadBackError(
                            f"It is not known which writer created {path!r}.",
                            cause=error.problem,
                            fix="Read the object to see which writer created it.",
                        ) from error
                else:
                    if stored == data:
                        return
                    raise ObjectExistsError(
                        f"{path!r} was written by a writer that does not use DynamoDB.",
                        fix="Let all writers of the table commit in the same way.",
                    ) from None
            except StorageError:
                if not remaining:
                    raise

    def _create(self, path: str, data: bytes) -> None:
        try:
            self._objects.put_if_absent(path, data)
        except UnsafeStoreError:
            # The server ignores preconditions. All writers that create a commit file write the bytes of its
            # entry, so writing it twice does not change it.
            if self._exists(path):
                raise ObjectExistsError(
                    f"{path!r} exists already.", fix="Read it to see which writer created it."
                ) from None
            self._objects.put(path, data)

    def _exists(self, path: str) -> bool:
        try:
            self._objects.head(path)
        except ObjectNotFoundError:
            return False
        return True


@contextmanager
def _before_entry(path: str) -> Iterator[None]:
    """A context before the entry is requested: a failure there means that nothing was written.

    This includes failures in completing another writer's commit.
    """
    try:
        yield
    except (ObjectExistsError, StorePermissionError, UnsafeStoreError, WriteRefusedError):
        raise
    except StorageError as error:
        raise NotWrittenError(
            f"{path!r} was not written.", cause=f"{error.problem} {error.cause}".strip(), fix=error.fix
        ) from error


class _NotReadBackError(AmbiguousWriteError):
    """The commit file exists, but it is not known which writer created it."""
