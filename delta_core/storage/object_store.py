"""Amazon S3, Google Cloud Storage and Azure Blob Storage as a `LogStore`, through obstore.

Two clients share one bucket. One client retries; it reads, lists, deletes and writes data. The other makes
one attempt and is used only for create-only writes: a client that retries a create-only write reports its
own first attempt as *already exists*.

Create-only writes use the store's own precondition: `If-None-Match: *` on S3 and Azure, generation 0 on
Google. A commit is never a copy of an object: stores ignore preconditions on copies.
"""

from __future__ import annotations

import contextlib
import itertools
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
from delta_core.storage.log_store import ObjectInfo, has_control_characters, in_place_of, plain_parts
from delta_core.storage.object_store_errors import create_error, read_error, write_error
from delta_core.storage.parallel import parallel
from delta_core.storage.probe import require_preconditions
from delta_core.storage.ranged_input import open_ranged
from delta_core.storage.remote_uri import RemoteUri, parse_remote_uri
from delta_core.storage.request_meter import METER

if TYPE_CHECKING:
    from obstore.store import ObjectStore

SINGLE_PUT_BYTES = 64 << 20
"""Larger objects are uploaded in parts, unless one request must create them."""

_LIST_PAGE = 1000

# ValueError and TypeError: arguments that cannot be part of a request.
_FAILURES = (FileNotFoundError, PermissionError, TimeoutError, ConnectionError, ValueError, TypeError)
_PANIC = "PanicException"


class Clients:
    """The two clients of one bucket. A forked process creates them again.

    Attributes:
        proved: True when the service is known to honour preconditions, so that no probe is needed.
        place: identifies the endpoint and the bucket; the outcome of the probe is cached under it.
    """

    def __init__(
        self, build: Callable[[], tuple[ObjectStore, ObjectStore]], *, proved: bool, place: str
    ) -> None:
        """Create both clients.

        Args:
            build: returns the client that retries and the client that makes one attempt.
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
        """The client that retries. Get it before looking up a function of obstore: it may reload obstore."""
        return self._current().patient

    @property
    def single(self) -> ObjectStore:
        """The client that makes one attempt."""
        return self._current().single

    def _current(self) -> _Made:
        if self._made.process != os.getpid():
            # Keep it: closing it would wait for the parent's threads.
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
    """Objects below a prefix of a bucket. The prefix may be empty."""

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
        """True: the listings of all three services are consistent."""
        return True

    @property
    def remote(self) -> bool:
        """True: each request is a round trip."""
        return True

    def parent(self) -> ObjectLogStore | None:
        """The store of the prefix above, with the same clients; None for the whole bucket."""
        above = parse_remote_uri(self._uri).parent
        return None if above is None else ObjectLogStore(above, self._clients, clock=self.clock)

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

        Objects in subdirectories are skipped with one request for each subdirectory.
        """
        prefix = self._directory(path)
        infos: list[ObjectInfo] = []
        offset = None if start_after is None else prefix + start_after
        with _translating(read_error, path, verb="list"):
            while True:
                behind = self._list_flat(prefix, offset, infos)
                if behind is None:
                    break
                offset = behind
        infos.sort(key=lambda info: info.path)
        return infos

    def list_directories(self, path: str) -> list[str]:
        """The names of the directories directly in a directory, sorted. A request for each thousand names."""
        prefix = self._directory(path)
        with _translating(read_error, path, verb="list"):
            client = self._clients.patient
            result = obstore.list_with_delimiter(client, prefix.rstrip("/") or None)
            found = [str(name).rstrip("/") for name in result["common_prefixes"]]
            METER.count(max(1, -(-(len(found) + len(result["objects"])) // _LIST_PAGE)))
        return sorted(name.rpartition("/")[2] for name in found)

    def _list_flat(self, prefix: str, offset: str | None, infos: list[ObjectInfo]) -> str | None:
        """List until a subdirectory begins. Returns the offset behind it, or None at the end."""
        if offset is None:
            client = self._clients.patient
            result = obstore.list_with_delimiter(client, prefix.rstrip("/") or None)
            names = len(result["objects"]) + len(result["common_prefixes"])
            METER.count(max(1, -(-names // _LIST_PAGE)))
            infos.extend(self._infos(result["objects"]))
            return None
        client = self._clients.patient
        stream = obstore.list(client, prefix.rstrip("/") or None, offset=offset, chunk_size=_LIST_PAGE)
        METER.count()
        for number, page in enumerate(stream):
            METER.count(1 if number else 0)
            for meta in page:
                name, slash, _ = meta["path"].removeprefix(prefix).partition("/")
                if slash:
                    # "0" is the character after "/": no other name in the subdirectory sorts after it.
                    return f"{prefix}{name}0"
                infos.extend(self._infos([meta]))
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
        """A seekable reader. One request for the size, one per range. Raises ObjectNotFoundError."""
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
        """A seekable reader of the object, which is fetched at the call. One request."""
        return pa.BufferReader(self.read(path))

    # ------------------------------------------------------------ writes

    def put_if_absent(self, path: str, data: bytes) -> None:
        """Create the object, never replace it. One attempt of one request.

        The first write of a process to a bucket of an unknown service makes three more requests: see `probe`.

        Raises:
            ObjectExistsError: the name is taken, or the store detected two concurrent writers.
            AmbiguousWriteError: it is not known whether the object was created.
            StorePermissionError: refused; nothing was created.
            WriteRefusedError: the store cannot carry out such a request; nothing was created.
            UnsafeStoreError: the store ignores preconditions; nothing was created.
            NotWrittenError: the probe failed; nothing was created.
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
            # Only the object of the probe is in doubt.
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

        The content is first written to a local temporary file: a failure uploads nothing, and leaves no
        parts that cost money. One request up to 64 MiB, else one for each 64 MiB and two more.
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
        """Check that the objects exist; acknowledged writes are durable. One request each."""
        parallel(self, [_bound(self.head, path) for path in paths])

    # ------------------------------------------------------------ helpers

    def _pages(self, path: str) -> Iterator[Sequence[Any]]:
        prefix = self._directory(path)
        with _translating(read_error, path, verb="list"):
            client = self._clients.patient
            stream = obstore.list(client, prefix.rstrip("/") or None, chunk_size=_LIST_PAGE)
        METER.count()
        for number in itertools.count():
            with _translating(read_error, path, verb="list"):
                page = next(stream, None)
            if page is None:
                return
            METER.count(1 if number else 0)
            yield page

    def _key(self, path: str) -> str:
        parts = plain_parts(path, root_uri=self._uri)
        if has_control_characters(path):
            raise PathEscapeError(
                f"The store path {path!r} is not a valid name in an object store.",
                cause="The path contains a control character or a lone surrogate.",
                fix="Rename the object, or remove the entry from the log.",
            )
        return self._prefix + "/".join(parts)

    def _directory(self, path: str) -> str:
        return f"{self._key(path)}/" if path else self._prefix

    def _infos(self, metas: Sequence[Any]) -> Iterator[ObjectInfo]:
        for meta in metas:
            path = meta["path"].removeprefix(self._prefix)
            # Some tools create objects that represent directories.
            if path and not path.endswith("/"):
                yield _info(path, meta)


def _puts(size_bytes: int) -> int:
    """The number of requests that write an object: more than one when it is uploaded in parts."""
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
        # The client's internal failures are not subclasses of Exception, so callers would not catch them.
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
    # Whole seconds: responses about one object have no more precision, but listings do.
    return int(modified.timestamp()) * 1000
