"""Amazon S3, Google Cloud Storage and Azure Blob Storage as a `LogStore`, through obstore.

Two clients share one bucket. One tries again by itself; it reads, lists, deletes and writes data. The other
makes one attempt and is only for create-only writes: a client that tries a create-only write again reports
its own first attempt as *already exists*.

Create-only is the store's own precondition: `If-None-Match: *` on S3 and Azure, generation 0 on Google.
Objects are never copied to commit: stores ignore preconditions there.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import obstore
import pyarrow as pa
from obstore import exceptions

from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import AmbiguousWriteError, NotWrittenError, PathEscapeError, StorageError
from delta_core.storage.client_library import require_own_library
from delta_core.storage.listed_files import ListedFiles, ListedRows
from delta_core.storage.log_store import ObjectInfo
from delta_core.storage.object_store_errors import create_error, read_error, write_error
from delta_core.storage.parallel import parallel
from delta_core.storage.probe import require_preconditions
from delta_core.storage.ranged_input import open_ranged
from delta_core.storage.remote_uri import RemoteUri
from delta_core.storage.request_meter import METER
from delta_core.storage.stand_in import in_place_of
from delta_core.storage.store_path import has_control_characters, plain_parts

if TYPE_CHECKING:
    from obstore.store import ObjectStore

SINGLE_PUT_BYTES = 64 << 20
"""Larger objects are uploaded in parts, unless they must be created in one request."""

_LIST_PAGE = 1000

# The last two: what cannot be part of a request.
_FAILURES = (FileNotFoundError, PermissionError, TimeoutError, ConnectionError, ValueError, TypeError)
_PANIC = "PanicException"


class Clients:
    """Two clients of one bucket, made anew in a process that is forked.

    Attributes:
        proved: True where the service is known to honour preconditions, so that no probe is needed.
        place: names endpoint and bucket, for remembering the outcome of the probe.
    """

    def __init__(
        self, build: Callable[[], tuple[ObjectStore, ObjectStore]], *, proved: bool, place: str
    ) -> None:
        """Make both.

        Args:
            build: gives the one that tries again by itself, and the one that makes one attempt.
            proved: see above.
            place: see above.
        """
        self.proved = proved
        self.place = place
        self._build = build
        self._made = _Made.here(build)
        self._of_parents: list[_Made] = []

    @property
    def patient(self) -> ObjectStore:
        """Tries again by itself. To be taken before a function of obstore's, which may change with it."""
        return self._of_this_process().patient

    @property
    def single(self) -> ObjectStore:
        """Makes one attempt."""
        return self._of_this_process().single

    def _of_this_process(self) -> _Made:
        if self._made.process != os.getpid():
            # Thrown away, they would wait for the parent's threads.
            self._of_parents.append(self._made)
            self._made = _Made.here(self._build)
        return self._made


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    process: int
    patient: ObjectStore
    single: ObjectStore

    @classmethod
    def here(cls, build: Callable[[], tuple[ObjectStore, ObjectStore]]) -> _Made:
        require_own_library()
        patient, single = build()
        return cls(process=os.getpid(), patient=patient, single=single)


class ObjectLogStore:
    """Objects below a prefix of a bucket, which need not hold any yet."""

    def __init__(self, uri: RemoteUri, clients: Clients, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._uri = str(uri)
        self._prefix = f"{uri.path}/" if uri.path else ""
        self._clients = clients
        self.clock = clock

    def __repr__(self) -> str:
        return f"ObjectLogStore({self._uri!r})"

    @property
    def uri(self) -> str:
        """The table root's canonical URI."""
        return self._uri

    @property
    def consistent_listing(self) -> bool:
        """All three services list what was written."""
        return True

    @property
    def remote(self) -> bool:
        """Each request is a round trip."""
        return True

    # ------------------------------------------------------------ reads

    def read(self, path: str) -> bytes:
        """The whole object. Raises ObjectNotFoundError. One request."""
        key = self._key(path)
        with _translating(read_error, path, verb="read"):
            client = self._clients.patient
            METER.count()
            data = bytes(obstore.get(client, key).bytes())
            METER.count(0, bytes_read=len(data))
            return data

    def head(self, path: str) -> ObjectInfo:
        """Size and time of one object. Raises ObjectNotFoundError. One request."""
        key = self._key(path)
        with _translating(read_error, path, verb="inspect"):
            client = self._clients.patient
            METER.count()
            return _info(path, obstore.head(client, key))

    def list_directory(self, path: str, *, start_after: str | None = None) -> list[ObjectInfo]:
        """The objects directly in a directory, sorted by name. A request for each thousand names.

        What lies in directories below is left out by a request that goes on behind each of them.
        """
        prefix = self._directory(path)
        found: list[ObjectInfo] = []
        offset = None if start_after is None else prefix + start_after
        with _translating(read_error, path, verb="list"):
            while True:
                behind = self._list_flat(prefix, offset, found)
                if behind is None:
                    break
                offset = behind
        found.sort(key=lambda info: info.path)
        return found

    def _list_flat(self, prefix: str, offset: str | None, found: list[ObjectInfo]) -> str | None:
        """List until a directory begins; then where to go on behind it, else None."""
        if offset is None:
            client = self._clients.patient
            result = obstore.list_with_delimiter(client, prefix.rstrip("/") or None)
            names = len(result["objects"]) + len(result["common_prefixes"])
            METER.count(max(1, -(-names // _LIST_PAGE)))
            found.extend(self._infos(result["objects"]))
            return None
        client = self._clients.patient
        stream = obstore.list(client, prefix.rstrip("/") or None, offset=offset, chunk_size=_LIST_PAGE)
        METER.count()
        for number, page in enumerate(stream):
            METER.count(1 if number else 0)
            for meta in page:
                name, slash, _ = meta["path"].removeprefix(prefix).partition("/")
                if slash:
                    # The sign after the slash: nothing in the directory sorts behind it.
                    return f"{prefix}{name}0"
                found.extend(self._infos([meta]))
        return None

    def walk(self, path: str = "") -> Iterator[ObjectInfo]:
        """Every object below a directory. A request for each thousand."""
        for page in self._pages(path):
            yield from self._infos(page)

    @in_place_of(walk)
    def walk_batches(self, path: str = "") -> Iterator[ListedFiles]:
        """As `walk`, in columns."""
        rows = ListedRows()
        for page in self._pages(path):
            for meta in page:
                below = meta["path"].removeprefix(self._prefix)
                if below and not below.endswith("/"):
                    rows.add(below, meta["size"], _modified_ms(meta))
            if rows.are_enough:
                yield rows.take()
        if rows.names:
            yield rows.take()

    def open_input(self, path: str) -> pa.NativeFile:
        """A seekable reader, a request for its size and one for each range. Raises ObjectNotFoundError."""
        size_bytes = self.head(path).size_bytes
        key = self._key(path)

        def fetch(begin: int, length: int) -> bytes:
            with _translating(read_error, path, verb="read"):
                client = self._clients.patient
                METER.count()
                data = bytes(obstore.get_range(client, key, start=begin, length=length))
                METER.count(0, bytes_read=len(data))
                return data

        return open_ranged(fetch, size_bytes=size_bytes)

    def open_whole(self, path: str) -> pa.NativeFile:
        """A seekable reader of the object, which is fetched now. One request."""
        return pa.BufferReader(self.read(path))

    # ------------------------------------------------------------ writes

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Create the object, never replace it. One attempt of one request.

        The first time that a process writes to a bucket of an unknown service, three more: see `probe`.

        Raises:
            ObjectExistsError: the name is taken, or the store saw two writers at once.
            AmbiguousWriteError: it cannot be told whether the object was created.
            StorePermissionError: refused; nothing was created.
            WriteRefusedError: the store cannot carry out such a request; nothing was created.
            UnsafeStoreError: the store ignores preconditions; nothing was created.
            NotWrittenError: whether it does could not be found out; nothing was created.
        """
        key = self._key(path)
        if not self._clients.proved:
            self._probe(path)
        self._create(key, path, data)

    def _probe(self, path: str) -> None:
        try:
            require_preconditions(
                self._clients.place, create=self._create_for_probe, delete=self.delete, uri=self._uri
            )
        except AmbiguousWriteError as error:
            # In doubt is the probe's object alone.
            raise NotWrittenError(
                f"{path!r} was not written.", cause=f"{error.problem} {error.cause}".strip(), fix=error.fix
            ) from error

    def _create(self, key: str, path: str, data: bytes) -> None:
        with _translating(create_error, path):
            client = self._clients.single
            METER.count(bytes_written=len(data))
            obstore.put(client, key, data, mode="create", use_multipart=False)

    def _create_for_probe(self, path: str, data: bytes) -> None:
        self._create(self._key(path), path, data)

    def put(self, path: str, data: bytes) -> None:
        """Create or atomically replace the object. One request up to 64 MiB."""
        key = self._key(path)
        with _translating(write_error, path):
            client = self._clients.patient
            METER.count(_puts(len(data)), bytes_written=len(data))
            obstore.put(client, key, data, use_multipart=len(data) > SINGLE_PUT_BYTES)

    def delete(self, path: str) -> None:
        """Delete the object; a missing one is not an error. One request."""
        key = self._key(path)
        client = self._clients.patient
        with (
            _translating(write_error, path, verb="delete"),
            contextlib.suppress(exceptions.NotFoundError, FileNotFoundError),
        ):
            METER.count()
            obstore.delete(client, key)

    @contextmanager
    def open_output(self, path: str) -> Iterator[pa.NativeFile]:
        """A writer whose object appears when the context ends normally.

        What is written waits on the local disk: a failure uploads nothing, and leaves no parts that cost
        money. One request up to 64 MiB, else one for each 64 MiB and two more.
        """
        key = self._key(path)
        descriptor, spool = tempfile.mkstemp(prefix="deltaward-")
        os.close(descriptor)
        try:
            with pa.OSFile(spool, "wb") as sink:
                yield sink
            size_bytes = os.path.getsize(spool)
            with open(spool, "rb") as source, _translating(write_error, path):
                client = self._clients.patient
                METER.count(_puts(size_bytes), bytes_written=size_bytes)
                obstore.put(
                    client,
                    key,
                    source,
                    use_multipart=size_bytes > SINGLE_PUT_BYTES,
                    chunk_size=SINGLE_PUT_BYTES,
                    max_concurrency=4,
                )
        finally:
            os.unlink(spool)

    def persist(self, paths: Sequence[str]) -> None:
        """What a store has acknowledged is durable; only that it is there is checked. A request for each."""
        parallel(self, [_bound(self.head, path) for path in paths])

    # ------------------------------------------------------------ helpers

    def _pages(self, path: str) -> Iterator[Sequence[Any]]:
        prefix = self._directory(path)
        with _translating(read_error, path, verb="list"):
            client = self._clients.patient
            stream = obstore.list(client, prefix.rstrip("/") or None, chunk_size=_LIST_PAGE)
        while True:
            with _translating(read_error, path, verb="list"):
                page = next(stream, None)
            if page is None:
                return
            METER.count()
            yield page

    def _key(self, path: str) -> str:
        parts = plain_parts(path, root_uri=self._uri)
        if has_control_characters(path):
            raise PathEscapeError(
                f"The store path {path!r} is no name in an object store.",
                cause="It holds a control character, or half a character.",
                fix="Rename the object, or remove the entry from the log.",
            )
        return self._prefix + "/".join(parts)

    def _directory(self, path: str) -> str:
        return f"{self._key(path)}/" if path else self._prefix

    def _infos(self, metas: Sequence[Any]) -> Iterator[ObjectInfo]:
        for meta in metas:
            path = meta["path"].removeprefix(self._prefix)
            # Some tools make objects that stand for directories.
            if path and not path.endswith("/"):
                yield _info(path, meta)


def _puts(size_bytes: int) -> int:
    """How many requests write an object: more than one where it goes in parts."""
    return 1 if size_bytes <= SINGLE_PUT_BYTES else -(-size_bytes // SINGLE_PUT_BYTES) + 2


def _bound(function: Callable[[str], ObjectInfo], path: str) -> Callable[[], ObjectInfo]:
    return lambda: function(path)


@contextmanager
def _translating(translate: Callable[..., Exception], path: str, **context: str) -> Iterator[None]:
    try:
        yield
    except (exceptions.BaseError, *_FAILURES) as error:
        raise translate(error, path, **context) from None
    except BaseException as error:
        # The client's own faults are no Exception, so that nobody who expects one would notice.
        if type(error).__name__ != _PANIC:
            raise
        raise translate(StorageError(f"The client failed: {error}"), path, **context) from None


def _info(path: str, meta: Any) -> ObjectInfo:
    return ObjectInfo(
        path=path,
        size_bytes=meta["size"],
        modified_ms=_modified_ms(meta),
        etag=meta.get("e_tag"),
    )


def _modified_ms(meta: Any) -> int:
    modified: datetime = meta["last_modified"]
    # Whole seconds, since answers about one object have no more, and a listing does.
    return int(modified.timestamp()) * 1000
