"""Checkpoints, of which Parquet is read leaf by leaf (PROTOCOL.md, "Checkpoints").

Only the leaves that are asked for are read, one row group at a time: reading a nested column by its
top-level name costs all of its leaves, and dictionary-read map leaves cannot be joined across row
groups. Footer statistics tell which row groups hold which actions; where they are missing, all do.

A V2 checkpoint keeps its files in sidecars, or some or all of them itself ("V2 Spec"). Sidecars are
opened when files are asked for, never for the protocol, the metadata or the transactions.
"""

from __future__ import annotations

import hashlib
import posixpath
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from delta_core.actions.json_codec import RawAction, parse_commit
from delta_core.actions.validation import CHECKPOINT_CHECKS, InvalidAction
from delta_core.errors import CorruptLogError, ObjectNotFoundError, PathEscapeError
from delta_core.log.bounded_read import read_lines
from delta_core.log.listing import CheckpointFiles
from delta_core.log.log_path import SIDECAR_DIRECTORY, LogFileKind
from delta_core.storage.cached import kept_columns
from delta_core.storage.kept_columns import KeptColumns
from delta_core.storage.log_store import LogStore, ObjectInfo
from delta_core.storage.parquet_footer import read_footer
from delta_core.storage.parquet_pages import check_pages
from delta_core.storage.side_by_side import MAX_REQUESTS, side_by_side
from delta_core.storage.uri import resolve_data_path, uri_scheme

# The leaf that is never null where an action of the kind is present.
KEY_LEAVES = {
    "add": "add.path",
    "remove": "remove.path",
    "metaData": "metaData.id",
    "protocol": "protocol.minReaderVersion",
    "txn": "txn.appId",
    "domainMetadata": "domainMetadata.domain",
    "checkpointMetadata": "checkpointMetadata.version",
    "sidecar": "sidecar.path",
}

# One that every such action has, too, so that an action that lost its key is noticed.
_COMPANIONS = {
    "add": "add.size",
    "remove": "remove.dataChange",
    "metaData": "metaData.schemaString",
    "protocol": "protocol.minWriterVersion",
    "txn": "txn.version",
    "domainMetadata": "domainMetadata.configuration",
    "sidecar": "sidecar.sizeInBytes",
}

BATCH_ROWS = 1 << 17
"""Rows are decoded so many at a time: one large allocation costs more than the decoding."""

# Footers are small reads that mostly wait for the store.
_SIDECAR_THREADS = 8

# Larger ones are read in part, though that takes more requests.
_WHOLE_BYTES = 256 << 20

# The footer's length and the magic number.
_TRAILER_BYTES = 8

_DIGEST_BYTES = 32
_DIGESTED_AT_ONCE = 4 << 20

# A process may have a thousand files open, and many tables.
_HELD_SIDECARS = 64


class CheckpointPart:
    """One Parquet file of a checkpoint.

    Args:
        store: the table's store.
        info: the file.
        hold: keep it open, so that it stays readable when it is replaced or deleted.
    """

    def __init__(self, store: LogStore, info: ObjectInfo, *, hold: bool = True) -> None:
        self._store = store
        self.path = info.path
        self.size_bytes = info.size_bytes
        source = self._source()
        try:
            self.size_bytes = source.size()
            footer = read_footer(source)
            source.seek(0)
            metadata = pq.read_metadata(source)
            leaves = [leaf.path for leaf in footer.leaves]
            maps = [leaf for leaf in leaves if leaf.startswith("add.partitionValues.")]
            # What a name means may change while the file is open.
            kept = kept_columns(store, info.path)
            if kept is not None and (not hold or self.size_bytes > _WHOLE_BYTES):
                footer_bytes = metadata.serialized_size + _TRAILER_BYTES
                kept = kept.of_content(_digest(source, max(0, self.size_bytes - footer_bytes)))
        except (pa.ArrowException, OSError, ValueError) as error:
            source.close()
            raise self._damaged(error) from error
        self._maps = maps
        self._footer = footer
        self.metadata = metadata
        self._kept = kept
        self._held = source if hold else None
        self._walked: set[tuple[int, int]] = set()
        if not hold:
            source.close()
        self.leaves = {leaf: index for index, leaf in enumerate(leaves)}

    def _source(self) -> pa.NativeFile:
        # Most of a checkpoint is read sooner or later, in many small reads.
        if self.size_bytes <= _WHOLE_BYTES:
            return self._store.open_whole(self.path)
        return self._store.open_input(self.path)

    def _parquet_file(self, source: pa.NativeFile) -> pq.ParquetFile:
        return pq.ParquetFile(
            source, metadata=self.metadata, read_dictionary=self._maps, page_checksum_verification=True
        )

    @contextmanager
    def _opened(self, row_group: int, leaves: Sequence[str]) -> Iterator[pq.ParquetFile]:
        """The file for one reader, among others, that will decode some leaves of a row group."""
        if self._held is not None:
            self._check_pages(self._held, row_group, leaves)
            yield self._parquet_file(self._held)
            return
        try:
            source = self._source()
        except ObjectNotFoundError as error:
            raise damaged_checkpoint(self.path, "it was deleted after it was opened") from error
        with source:
            self._check_pages(source, row_group, leaves)
            yield self._parquet_file(source)

    def _check_pages(self, source: pa.NativeFile, row_group: int, leaves: Sequence[str]) -> None:
        if self._store.remote and self.size_bytes > _WHOLE_BYTES:
            return  # each header would be a request
        for leaf, index in self.leaves.items():
            wanted = any(leaf == one or leaf.startswith(one + ".") for one in leaves)
            if wanted and (row_group, index) not in self._walked:
                check_pages(source, self._footer.groups[row_group][index])
                self._walked.add((row_group, index))

    @cached_property
    def kept_columns(self) -> KeptColumns | None:
        """Where what is worked out from the file is kept for other processes, if anywhere.

        A batch is kept for, and taken for, the bytes that are open: all of them where they are in memory,
        else those of the footer. The first call reads them; no request.
        """
        if self._kept is None or self._held is None or self.size_bytes > _WHOLE_BYTES:
            return self._kept
        return self._kept.of_content(_digest(self._held, 0))

    def has(self, column: str) -> bool:
        """True when the file has the leaf, or leaves below it."""
        return bool(self._of(column))

    def present_rows(self, row_group: int, leaf: str) -> int | None:
        """How many rows of the row group have a value in the leaf; None when the footer does not say."""
        index = self.leaves.get(leaf)
        if index is None:
            return 0
        nulls = self._footer.groups[row_group][index].nulls
        return None if nulls is None else self._footer.group_rows[row_group] - nulls

    def row_groups_with(self, kind: str) -> list[int]:
        """The row groups that may hold actions of a kind.

        Raises:
            CorruptLogError: the footer counts other fields of such actions and not their key.
        """
        leaf, companion = KEY_LEAVES[kind], _COMPANIONS.get(kind)
        found = []
        for group in range(len(self._footer.group_rows)):
            if self.present_rows(group, leaf) != 0:
                found.append(group)
            elif companion is not None and self.present_rows(group, companion):
                raise damaged_checkpoint(self.path, f"{kind!r} actions have a {companion!r} and no {leaf!r}")
            elif leaf not in self.leaves and any(
                self.present_rows(group, one) != 0 for one in self._of(kind)
            ):
                raise damaged_checkpoint(self.path, f"{kind!r} actions have no {leaf!r}")
        return found

    def _of(self, column: str) -> list[str]:
        return [leaf for leaf in self.leaves if leaf == column or leaf.startswith(column + ".")]

    def read(self, row_group: int, kind: str, columns: Sequence[str]) -> list[pa.StructArray]:
        """The named fields of one kind of action in one row group; rows of other kinds are null.

        In runs of BATCH_ROWS, the last one shorter.

        Raises:
            CorruptLogError: the file cannot be decoded.
        """
        found = list(self.stream(row_group, kind, columns))
        if all(len(part) == BATCH_ROWS for part in found[:-1]) and all(len(p) <= BATCH_ROWS for p in found):
            return found
        # Where a page's dictionary ends Arrow may end a batch, too, and other columns then do not fit it.
        try:
            leaves = _leaves(kind, columns)
            with self._opened(row_group, leaves) as file:
                whole = file.read_row_group(row_group, columns=leaves, use_threads=False)
            column = whole.column(kind)
            rows = column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
        except _UNREADABLE as error:
            raise self._damaged(error) from error
        return [rows.slice(start, BATCH_ROWS) for start in range(0, len(rows), BATCH_ROWS)]

    def stream(
        self, row_group: int, kind: str, columns: Sequence[str], *, rows: int = BATCH_ROWS
    ) -> Iterator[pa.StructArray]:
        """As `read`, for who may stop early, in runs of so many rows or less. Several may be under way.

        Raises:
            CorruptLogError: the file cannot be decoded.
        """
        try:
            leaves = _leaves(kind, columns)
            with self._opened(row_group, leaves) as file:
                for batch in file.iter_batches(
                    rows, row_groups=[row_group], columns=leaves, use_threads=False
                ):
                    yield batch.column(kind)
        except _UNREADABLE as error:
            raise self._damaged(error) from error

    def decode_all(self) -> None:
        """Decode every column once, in bounded memory: before what it replaces is deleted.

        Raises:
            CorruptLogError: one cannot be decoded.
        """
        kinds = sorted({leaf.partition(".")[0] for leaf in self.leaves})
        try:
            for group in range(self.metadata.num_row_groups):
                with self._opened(group, kinds) as file:
                    for _ in file.iter_batches(BATCH_ROWS, row_groups=[group], use_threads=False):
                        pass
        except _UNREADABLE as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> CorruptLogError:
        return damaged_checkpoint(self.path, str(error).split("\n")[0])


def _digest(source: pa.NativeFile, start: int) -> bytes:
    """Of a file's bytes from a place on. The position that others read at is left alone."""
    found = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for at in range(start, source.size(), _DIGESTED_AT_ONCE):
        found.update(source.read_at(_DIGESTED_AT_ONCE, at))
    return found.digest()


_UNREADABLE = (pa.ArrowException, OSError, ValueError, KeyError, IndexError, NotImplementedError)


def _leaves(kind: str, columns: Sequence[str]) -> list[str]:
    return [f"{kind}.{name}" for name in columns]


def damaged_checkpoint(path: str, cause: str) -> CorruptLogError:
    """The error of a checkpoint that cannot be used."""
    return CorruptLogError(
        f"The checkpoint {path!r} cannot be read.",
        cause=cause,
        fix="Delete the checkpoint if the commits before it still exist, else restore it from a backup.",
    )


class CheckpointReader:
    """A complete checkpoint.

    Attributes:
        files: its own files, without sidecars.
        parts: those of them that are Parquet.
    """

    def __init__(
        self,
        files: CheckpointFiles,
        parts: Sequence[CheckpointPart],
        json_actions: Sequence[RawAction] = (),
        *,
        store: LogStore | None = None,
    ) -> None:
        """Put the parts together; callers use `open`. Sidecars cannot be read without a store."""
        self.files = files
        self.parts = tuple(parts)
        self._json_actions = tuple(json_actions)
        self._store = store
        self._sidecars: tuple[CheckpointPart, ...] | None = None
        self._lock = threading.Lock()

    @classmethod
    def open(cls, store: LogStore, files: CheckpointFiles) -> CheckpointReader:
        """Read the footers, and JSON whole. One request a part on a remote store, none for a sidecar.

        Raises:
            CorruptLogError: a part is damaged, or says that it is another version's.
        """
        parquet = [part for part in files.parts if part.path.endswith(".parquet")]
        lines = [action for part in files.parts if part not in parquet for action in _json_part(store, part)]
        parts = side_by_side(store, [partial(CheckpointPart, store, part) for part in parquet])
        reader = cls(files, parts, lines, store=store)
        reader._check_version()
        return reader

    @property
    def is_v2(self) -> bool:
        """True when the checkpoint's files may be in sidecars (PROTOCOL.md, "V2 Spec")."""
        if self.files.kind is LogFileKind.V2_CHECKPOINT:
            return True
        return any(part.row_groups_with("sidecar") for part in self.parts if part.has("sidecar"))

    @property
    def file_parts(self) -> tuple[CheckpointPart, ...]:
        """Every Parquet file that may hold files or tombstones: the parts, and the sidecars.

        The first call opens the sidecars. Two or three requests for each, several at a time.

        Raises:
            CorruptLogError: a sidecar is missing, damaged or not below `_delta_log/_sidecars`.
        """
        with self._lock:
            if self._sidecars is None:
                self._sidecars = self._open_sidecars()
            return self.parts + self._sidecars

    @property
    def num_json_actions(self) -> int:
        """How many actions the checkpoint itself holds as JSON."""
        return len(self._json_actions)

    def sidecar_paths(self) -> list[str]:
        """The store paths of the sidecars that it names, which are not opened.

        Raises:
            CorruptLogError: one is not below `_delta_log/_sidecars`, or the checkpoint is damaged.
        """
        uri = "" if self._store is None else self._store.uri
        return [self._sidecar_path(fields["path"], uri) for fields in self.actions("sidecar")]

    def json_fields(self, kind: str) -> list[dict[str, Any]]:
        """The checked fields of each action of a kind that the checkpoint itself holds as JSON."""
        return [action.fields for action in self._json_actions if action.kind == kind]

    @property
    def has_deletion_vectors(self) -> bool:
        """False when the footers prove that no file has a deletion vector. Opens the sidecars."""
        leaf = "add.deletionVector.storageType"
        return any(fields.get("deletionVector") is not None for fields in self.json_fields("add")) or any(
            part.present_rows(group, leaf) != 0
            for part in self.file_parts
            for group in part.row_groups_with("add")
        )

    def actions(self, kind: str) -> Iterator[dict[str, Any]]:
        """The actions of one kind that is not a file, as checked JSON-like fields.

        Raises:
            CorruptLogError: damaged, or a field is missing.
        """
        key = KEY_LEAVES[kind].partition(".")[2]
        yield from self.json_fields(kind)
        for part in self.parts:
            present = sorted({leaf.split(".")[1] for leaf in part.leaves if leaf.startswith(kind + ".")})
            for group in part.row_groups_with(kind):
                for row in _present_rows(part, group, kind, present, key):
                    yield _checked(kind, row, part.path)

    def _check_version(self) -> None:
        """Exactly one action says which version a V2 checkpoint is of; a V1 checkpoint has none."""
        found = [fields["version"] for fields in self.actions("checkpointMetadata")]
        name = self.files.names[0]
        if len(found) > 1 or (not found and self.files.kind is LogFileKind.V2_CHECKPOINT):
            raise damaged_checkpoint(name, f"it holds {len(found)} 'checkpointMetadata' actions")
        if found and found[0] != self.files.version:
            raise damaged_checkpoint(name, f"it says that it is of version {found[0]}")

    def _open_sidecars(self) -> tuple[CheckpointPart, ...]:
        sidecars = list(self.actions("sidecar"))
        if not sidecars:
            return ()
        store = self._store
        assert store is not None
        paths = [self._sidecar_path(fields["path"], store.uri) for fields in sidecars]
        if len(set(paths)) < len(paths):
            # Its files would count twice.
            raise damaged_checkpoint(self.files.names[0], "it names a sidecar twice")

        def opened(path: str, fields: Mapping[str, Any]) -> CheckpointPart:
            hold = len(paths) <= _HELD_SIDECARS
            return self._open_sidecar(store, path, fields, hold=hold)

        if len(paths) == 1:
            return (opened(paths[0], sidecars[0]),)
        workers = min(MAX_REQUESTS if store.remote else _SIDECAR_THREADS, len(paths))
        with ThreadPoolExecutor(workers, thread_name_prefix="deltaward-sidecar") as pool:
            return tuple(pool.map(opened, paths, sidecars))

    def _open_sidecar(
        self, store: LogStore, path: str, fields: Mapping[str, Any], *, hold: bool
    ) -> CheckpointPart:
        size_bytes, modified_ms = fields.get("sizeInBytes"), fields.get("modificationTime")
        try:
            # What the manifest says of it saves a request.
            info = (
                store.head(path)
                if size_bytes is None or modified_ms is None
                else ObjectInfo(path=path, size_bytes=size_bytes, modified_ms=modified_ms)
            )
            part = CheckpointPart(store, info, hold=hold)
            if part.size_bytes != info.size_bytes:
                raise damaged_checkpoint(
                    self.files.names[0],
                    f"its sidecar {path!r} has {part.size_bytes} bytes, not {info.size_bytes}",
                )
            return part
        except ObjectNotFoundError as error:
            # For the checkpoint's reader that is damage: there may be a way around the whole checkpoint.
            raise damaged_checkpoint(self.files.names[0], f"its sidecar {path!r} does not exist") from error

    def _sidecar_path(self, raw: str, root_uri: str) -> str:
        """The store path of a sidecar, which the log names by a file name or an absolute URI."""
        is_absolute = uri_scheme(raw) is not None or raw.startswith("/")
        try:
            path = resolve_data_path(raw if is_absolute else f"{SIDECAR_DIRECTORY}/{raw}", root_uri=root_uri)
        except PathEscapeError as error:
            raise damaged_checkpoint(self.files.names[0], f"its sidecar: {error.problem}") from error
        if posixpath.dirname(path) != SIDECAR_DIRECTORY:
            raise damaged_checkpoint(
                self.files.names[0], f"its sidecar {raw!r} is not in {SIDECAR_DIRECTORY}"
            )
        return path


def _present_rows(
    part: CheckpointPart, group: int, kind: str, columns: Sequence[str], key: str
) -> list[dict[str, Any]]:
    """The actions of a kind in a row group; decodes no further than the last one that the footer counts."""
    count = part.present_rows(group, KEY_LEAVES[kind])
    found: list[dict[str, Any]] = []
    for rows in part.stream(group, kind, columns):
        try:
            # Damaged pages decode to invalid text.
            rows.validate(full=True)
            named = pc.is_valid(pc.struct_field(rows, key))
            _require_named(rows.filter(pc.invert(named)), kind, part.path)
            found += rows.filter(named).to_pylist()
        except _UNREADABLE as error:
            raise damaged_checkpoint(part.path, f"{kind}: {error}") from error
        if count is not None and len(found) >= count:
            break
    return found


def _require_named(rows: pa.StructArray, kind: str, path: str) -> None:
    """Rows without the key are those of other actions, so nothing else may be in them."""
    for index in range(rows.type.num_fields):
        item = rows.type.field(index)
        if not pa.types.is_nested(item.type) and pc.struct_field(rows, index).null_count < len(rows):
            raise damaged_checkpoint(path, f"a {kind!r} action has a {item.name!r}, and no key")


def _json_part(store: LogStore, info: ObjectInfo) -> list[RawAction]:
    try:
        return parse_commit(read_lines(store, info), path=info.path, checks=CHECKPOINT_CHECKS)
    except CorruptLogError as error:
        raise damaged_checkpoint(info.path, f"{error.problem} {error.cause}") from error


def _checked(kind: str, row: dict[str, Any], path: str) -> dict[str, Any]:
    fields = {name: _plain(value, name) for name, value in row.items() if value is not None}
    if isinstance(fields.get("format"), dict):
        fields["format"] = {name: _plain(value, name) for name, value in fields["format"].items()}
    try:
        CHECKPOINT_CHECKS[kind](fields)
    except InvalidAction as error:
        raise damaged_checkpoint(path, f"{kind}.{error}") from None
    return fields


def _plain(value: Any, name: str) -> Any:
    """Arrow gives a map as a list of pairs; what else is there in its place the checks refuse."""
    is_map = name in ("configuration", "options") and isinstance(value, list)
    return dict(value) if is_map and all(isinstance(item, tuple) for item in value) else value
