"""HDFS as a `LogStore`, through WebHDFS.

Every write goes to a temporary name and gets its final name by a rename; see `webhdfs_publisher`. A file
is durable when it is closed.
"""

from __future__ import annotations

import copy
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import (
    PathEscapeError,
    StorageError,
    StorageFullError,
)
from delta_core.storage.log_store import LogStore, ObjectInfo, plain_parts
from delta_core.storage.parallel import parallel
from delta_core.storage.ranged_input import open_ranged
from delta_core.storage.remote_uri import parse_remote_uri
from delta_core.storage.webhdfs_address import webhdfs_address
from delta_core.storage.webhdfs_client import (
    FIRST_PAUSE_SECONDS,
    PAUSE_GROWTH,
    FileStatus,
    WebHdfsClient,
    WebHdfsRefusedError,
)
from delta_core.storage.webhdfs_errors import (
    FAILURES,
    WebHdfsFailure,
    is_denied,
    is_missing,
    not_found,
    translated,
)
from delta_core.storage.webhdfs_publisher import TEMPORARY_PREFIX, WebHdfsPublisher

_OUTPUT_TRIES = 3
_SENT_AT_ONCE_BYTES = 1024 * 1024


class WebHdfsLogStore:
    """Objects below an HDFS directory, which need not exist yet. Creating the store sends no request.

    Reads and `open_output` retry with pauses; `put` and `put_if_absent` make one attempt. Temporary files of
    killed writers stay, as `.tmp-<uuid>`, and are not listed. Safe to use from several threads.

    Args:
        uri: `webhdfs://host:port/path`, `swebhdfs://` for TLS, or `hdfs://host/path`.
        options: `webhdfs_endpoint` (URLs of the NameNodes of one HDFS, separated by commas; the default is
            the URI's host, with port 9870 for `hdfs:`), `user`, `delegation_token`, `timeout_seconds`. No
            NameNode may be an Observer, since its listings can be outdated.
        clock: used for the pauses between attempts.

    Raises:
        InvalidUriError: the URI is not a directory of HDFS.
        ConfigurationError: an unknown option or a wrong value, or httpx is not installed.
    """

    def __init__(
        self, uri: str, *, options: Mapping[str, str] | None = None, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        address = webhdfs_address(uri, options or {})
        self._uri = address.uri
        self._root = address.root
        self._client = WebHdfsClient(address, clock=clock)
        self._publisher = WebHdfsPublisher(self._client, uri=self._uri)
        self._pages = True
        self.clock = clock

    def __repr__(self) -> str:
        return f"WebHdfsLogStore({self._uri!r})"

    @property
    def uri(self) -> str:
        """The table root's canonical URI."""
        return self._uri

    @property
    def consistent_listing(self) -> bool:
        """True: the active NameNode lists all earlier writes."""
        return True

    @property
    def remote(self) -> bool:
        """True: each request is a round trip, and a request that transfers bytes is two."""
        return True

    def parent(self) -> WebHdfsLogStore | None:
        """The store of the directory above, with the same client; None for the root of the file system."""
        uri = parse_remote_uri(self._uri).parent
        if uri is None:
            return None
        above = copy.copy(self)
        above._uri = str(uri)
        above._root = self._root.rpartition("/")[0]
        above._publisher = WebHdfsPublisher(self._client, uri=above._uri)
        return above

    # ------------------------------------------------------------ reads

    def read(self, path: str) -> bytes:
        """The whole object. Two requests: NameNode and DataNode. Raises ObjectNotFoundError.

        Three when the response does not mark its end.
        """
        target = self._resolve(path)
        try:
            return self._client.fetch(target)
        except FAILURES as error:
            raise self._failed_read(error, path, "read") from error

    def head(self, path: str) -> ObjectInfo:
        """Size and time of one object. One request. Raises ObjectNotFoundError."""
        target = self._resolve(path)
        try:
            status = self._client.status(target)
        except FAILURES as error:
            raise self._failed_read(error, path, "inspect") from error
        if status.kind != "FILE":
            raise not_found(path)
        return _info(path, status)

    def list_directory(self, path: str, *, start_after: str | None = None) -> list[ObjectInfo]:
        """The files directly in a directory, sorted by name; a missing directory is empty.

        One request for each thousand entries after `start_after`. One request in all when the server is too
        old to list in pages.
        """
        prefix = f"{path}/" if path else ""
        infos = [
            _info(prefix + entry.name, entry)
            for entry in self._entries(path, start_after)
            if entry.kind == "FILE"
            and _is_listed(entry)
            and (start_after is None or entry.name > start_after)
        ]
        infos.sort(key=lambda info: info.path)
        return infos

    def list_directories(self, path: str) -> list[str]:
        """The names of the directories directly in a directory, sorted. Requests as for `list_directory`."""
        entries = self._entries(path, None)
        return sorted(entry.name for entry in entries if entry.kind == "DIRECTORY" and entry.name)

    def walk(self, path: str = "") -> Iterator[ObjectInfo]:
        """Every file below a directory. Skips symbolic links. Requests as for a listing of each directory."""
        pending = [path]
        while pending:
            current = pending.pop()
            prefix = f"{current}/" if current else ""
            for entry in self._entries(current, None):
                if entry.kind == "DIRECTORY" and entry.name:
                    pending.append(prefix + entry.name)
                elif entry.kind == "FILE" and _is_listed(entry):
                    yield _info(prefix + entry.name, entry)

    def unlisted_paths(self) -> list[str]:
        """The paths below the root that are not objects: temporary files of killed writers, and directories.

        In an order in which `delete` succeeds for each once the objects are deleted. Requests as `walk`.
        """
        paths: list[str] = []
        pending = [""]
        while pending:
            current = pending.pop()
            prefix = f"{current}/" if current else ""
            for entry in self._entries(current, None):
                if entry.kind == "DIRECTORY" and entry.name:
                    pending.append(prefix + entry.name)
                elif entry.kind == "FILE" and _is_listed(entry):
                    continue
                paths.append(prefix + entry.name)
        return paths[::-1]

    def open_input(self, path: str) -> pa.NativeFile:
        """A seekable reader. One request now, two for each range. Raises ObjectNotFoundError."""
        size_bytes = self.head(path).size_bytes
        target = self._resolve(path)

        def fetch(offset: int, length: int) -> bytes:
            try:
                data = self._client.fetch(target, offset=offset, length=length)
            except FAILURES as error:
                raise self._failed_read(error, path, "read") from error
            if len(data) != length:
                raise StorageError(
                    f"{len(data)} bytes of {path!r} arrived instead of {length}.",
                    cause="The object was replaced during the read, or the connection broke.",
                    fix="Open the object again.",
                )
            return data

        return open_ranged(fetch, size_bytes=size_bytes)

    def open_whole(self, path: str) -> pa.NativeFile:
        """A reader of the whole object, fetched now as by `read`. Raises ObjectNotFoundError."""
        return pa.BufferReader(self.read(path))

    # ------------------------------------------------------------ writes

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Create the object, never replace it. Three requests, one of them to a DataNode; no retry.

        Raises:
            ObjectExistsError: the name is taken.
            NameBlockedError: a directory has the name, or a file has the name of a directory; nothing was
                created.
            AmbiguousWriteError: it is not known whether the object was created, or will be created when a
                request arrives late.
            StorePermissionError: refused; nothing was created.
            UnsafeStoreError: the server does not know `renameoptions`; nothing was created.
            NotWrittenError: nothing was created, and nothing will be created later.
        """
        target = self._resolve(path)
        temporary = self._publisher.write(target, path, data, size_bytes=len(data))
        self._publisher.publish(temporary, target, path, overwrite=False)

    def put(self, path: str, data: bytes) -> None:
        """Create or atomically replace the object. Three requests; no retry.

        Raises:
            NameBlockedError: a directory has the name, or a file has the name of a directory.
            StorePermissionError: refused.
            UnsafeStoreError: the server does not know `renameoptions`.
            StorageError: the write failed; the message states whether the object may have been replaced.
        """
        target = self._resolve(path)
        temporary = self._publisher.write(target, path, data, size_bytes=len(data))
        self._publisher.publish(temporary, target, path, overwrite=True)

    def delete(self, path: str) -> None:
        """Delete the object; a missing one is not an error. One request.

        Raises:
            StorageError: also when the path is a directory that is not empty.
        """
        target = self._resolve(path)
        try:
            self._client.delete(target)
        except FAILURES as error:
            if self._means_missing(error, path):
                return
            raise translated(error, path, "delete") from error

    @contextmanager
    def open_output(self, path: str) -> Iterator[pa.NativeFile]:
        """A writer whose object appears, durable, when the context ends normally.

        Until then the bytes are in a local temporary file. Requests and errors as for `put`, but a temporary
        failure is retried with pauses: writing the same bytes under the same name twice does no harm.
        """
        target = self._resolve(path)
        with ExitStack() as stack:
            try:
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="deltaward-hdfs-"))
                spool = Path(folder) / "spool"
                with pa.OSFile(str(spool), "wb") as sink:
                    yield sink
                source = stack.enter_context(spool.open("rb"))
            except OSError as error:
                raise StorageError(
                    f"Could not write {path!r}.",
                    cause=f"The local temporary file failed: {error.strerror or error}.",
                    fix="Check the free space of the directory for temporary files (TMPDIR).",
                ) from error
            self._send(target, path, source)

    def persist(self, paths: Sequence[str]) -> None:
        """Check that the objects exist; a closed file is durable. One request each, in parallel."""
        parallel(self, [partial(self.head, path) for path in paths])

    # ------------------------------------------------------------ helpers

    def _send(self, target: str, path: str, source: BinaryIO) -> None:
        """Create or replace an object with the bytes of a local file."""
        size_bytes = os.fstat(source.fileno()).st_size
        pause = FIRST_PAUSE_SECONDS
        for remaining in range(_OUTPUT_TRIES - 1, -1, -1):
            source.seek(0)
            chunks = iter(partial(source.read, _SENT_AT_ONCE_BYTES), b"")
            try:
                temporary = self._publisher.write(target, path, chunks, size_bytes=size_bytes)
                self._publisher.publish(temporary, target, path, overwrite=True)
                return
            except StorageError as error:
                # A full disk does not become free within seconds.
                if not error.retryable or isinstance(error, StorageFullError) or remaining == 0:
                    raise
            self.clock.sleep(pause)
            pause *= PAUSE_GROWTH

    def _resolve(self, path: str, *, directory: bool = False) -> str:
        if directory and path == "":
            return self._root
        parts = plain_parts(path, root_uri=self._uri)
        try:
            path.encode()
        except UnicodeEncodeError as error:
            raise PathEscapeError(
                f"The store path {path!r} is not a valid name in HDFS.",
                cause="The path contains a lone surrogate.",
                fix="Rename the file: names in HDFS are Unicode.",
            ) from error
        return "/".join([self._root, *parts])

    def _entries(self, path: str, start_after: str | None) -> Iterator[FileStatus]:
        """The entries of a directory; nothing when it is missing or not a directory."""
        directory = self._resolve(path, directory=True)
        try:
            entries, more = self._page(directory, start_after)
            while True:
                # The listing of a file is the file itself, without a name.
                yield from (entry for entry in entries if entry.name)
                if not more or not entries:
                    return
                entries, more = self._page(directory, entries[-1].name)
        except FAILURES as error:
            if self._means_missing(error, path):
                return
            raise translated(error, path, "list") from error

    def _page(self, directory: str, start_after: str | None) -> tuple[list[FileStatus], bool]:
        if self._pages:
            try:
                return self._client.listing_page(directory, start_after)
            except WebHdfsRefusedError as error:
                if error.exception not in ("IllegalArgumentException", "UnsupportedOperationException"):
                    raise
        entries = self._client.listing(directory)
        self._pages = False  # only certain after the older operation succeeded
        return entries, False

    def _means_missing(self, error: WebHdfsFailure, path: str) -> bool:
        """Whether a failure means that the object does not exist.

        For a path below a file, the NameNode answers that access is denied, except to the file's own user.
        In this case the directories on the path are checked, with one request each.
        """
        if is_missing(error):
            return True
        if not isinstance(error, WebHdfsRefusedError) or not is_denied(error):
            return False
        with suppress(*FAILURES):
            parts = path.split("/")
            for end in range(1, len(parts)):
                if self._client.status(self._resolve("/".join(parts[:end]))).kind == "FILE":
                    return True
        return False

    def _failed_read(self, error: WebHdfsFailure, path: str, verb: str) -> StorageError:
        return not_found(path) if self._means_missing(error, path) else translated(error, path, verb)


def open_webhdfs(uri: str, storage_options: Mapping[str, str], clock: Clock) -> LogStore:
    """The opener of WebHDFS stores for `delta_core.storage.open`."""
    return WebHdfsLogStore(uri, options=storage_options, clock=clock)


def _is_listed(entry: FileStatus) -> bool:
    return not entry.name.startswith(TEMPORARY_PREFIX)


def _info(path: str, status: FileStatus) -> ObjectInfo:
    return ObjectInfo(path=path, size_bytes=status.size_bytes, modified_ms=status.modified_ms)
