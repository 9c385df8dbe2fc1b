"""Reading a complete checkpoint of any kind: classic, multi-part or V2 (PROTOCOL.md, "Checkpoints").

A V2 checkpoint has its file actions in sidecars or in the checkpoint itself (PROTOCOL.md, "V2 Spec").
Sidecars are opened only when file actions are requested, never for protocol, metadata or transactions.
"""

from __future__ import annotations

import posixpath
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_core.actions.json_codec import RawAction, parse_commit
from delta_core.actions.validation import CHECKPOINT_CHECKS, InvalidAction
from delta_core.errors import CorruptLogError, ObjectNotFoundError, PathEscapeError
from delta_core.forks import renew_lock_in_children
from delta_core.log.checkpoint_part import KEY_LEAVES, UNREADABLE, CheckpointPart, damaged_checkpoint
from delta_core.log.commit_reader import read_lines
from delta_core.log.listing import CheckpointFiles
from delta_core.log.log_path import SIDECAR_DIRECTORY, LogFileKind
from delta_core.storage.log_store import LogStore, ObjectInfo
from delta_core.storage.parallel import MAX_REQUESTS, parallel
from delta_core.storage.uri import resolve_data_path, uri_scheme

# Reads of footers are small and mostly wait for the store.
_SIDECAR_THREADS = 8

# A process may open about a thousand files, and many tables.
_HELD_SIDECARS = 64


class CheckpointReader:
    """A complete checkpoint.

    Attributes:
        files: the checkpoint's files, without sidecars.
        parts: the Parquet files among `files`.
    """

    def __init__(
        self,
        files: CheckpointFiles,
        parts: Sequence[CheckpointPart],
        json_actions: Sequence[RawAction] = (),
        *,
        store: LogStore | None = None,
    ) -> None:
        """Create a reader of opened parts; callers use `open`. Sidecars cannot be read without a store."""
        self.files = files
        self.parts = tuple(parts)
        self._json_actions = tuple(json_actions)
        self._store = store
        self._sidecars: tuple[CheckpointPart, ...] | None = None
        self._lock = threading.Lock()
        renew_lock_in_children(self)

    @classmethod
    def open(cls, store: LogStore, files: CheckpointFiles) -> CheckpointReader:
        """Read the footers of Parquet parts, and JSON parts completely.

        One request for each part on a remote store, none for sidecars.

        Raises:
            CorruptLogError: a part is damaged, or the checkpoint's version is not the one in its name.
        """
        parquet = [part for part in files.parts if part.path.endswith(".parquet")]
        lines = [action for part in files.parts if part not in parquet for action in _json_part(store, part)]
        parts = parallel(store, [partial(CheckpointPart, store, part) for part in parquet])
        reader = cls(files, parts, lines, store=store)
        reader._check_version()
        return reader

    @property
    def is_v2(self) -> bool:
        """True when file actions may be in sidecars (PROTOCOL.md, "V2 Spec")."""
        if self.files.kind is LogFileKind.V2_CHECKPOINT:
            return True
        return any(part.row_groups_with("sidecar") for part in self.parts if part.has("sidecar"))

    @property
    def file_parts(self) -> tuple[CheckpointPart, ...]:
        """Every Parquet file that may hold `add` or `remove` actions: the parts and the sidecars.

        The first call opens the sidecars: two or three requests for each, in parallel.

        Raises:
            CorruptLogError: a sidecar is missing, damaged or not below `_delta_log/_sidecars`.
        """
        with self._lock:
            if self._sidecars is None:
                self._sidecars = self._open_sidecars()
            return self.parts + self._sidecars

    @property
    def num_json_actions(self) -> int:
        """The number of actions that the checkpoint itself holds as JSON."""
        return len(self._json_actions)

    def sidecar_paths(self) -> list[str]:
        """The store paths of the sidecars that the checkpoint refers to. Opens no sidecar.

        Raises:
            CorruptLogError: a sidecar is not below `_delta_log/_sidecars`, or the checkpoint is damaged.
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
        """The actions of one kind, other than file actions, as checked fields with JSON names.

        Raises:
            CorruptLogError: the checkpoint is damaged, or a field is missing.
        """
        key = KEY_LEAVES[kind].partition(".")[2]
        yield from self.json_fields(kind)
        for part in self.parts:
            present = sorted({leaf.split(".")[1] for leaf in part.leaves if leaf.startswith(kind + ".")})
            for group in part.row_groups_with(kind):
                for row in _present_rows(part, group, kind, present, key):
                    yield _checked(kind, row, part.path)

    def _check_version(self) -> None:
        """Compare the version in `checkpointMetadata` with the name: one action in V2, at most one in V1."""
        versions = [fields["version"] for fields in self.actions("checkpointMetadata")]
        name = self.files.names[0]
        if len(versions) > 1 or (not versions and self.files.kind is LogFileKind.V2_CHECKPOINT):
            raise damaged_checkpoint(name, f"It holds {len(versions)} 'checkpointMetadata' actions.")
        if versions and versions[0] != self.files.version:
            raise damaged_checkpoint(name, f"Its 'checkpointMetadata' states the version {versions[0]}.")

    def _open_sidecars(self) -> tuple[CheckpointPart, ...]:
        sidecars = list(self.actions("sidecar"))
        if not sidecars:
            return ()
        store = self._store
        assert store is not None
        paths = [self._sidecar_path(fields["path"], store.uri) for fields in sidecars]
        if len(set(paths)) < len(paths):
            # The files of that sidecar would count twice.
            raise damaged_checkpoint(self.files.names[0], "It refers to a sidecar twice.")

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
            # Size and time from the manifest save a request.
            info = (
                store.head(path)
                if size_bytes is None or modified_ms is None
                else ObjectInfo(path=path, size_bytes=size_bytes, modified_ms=modified_ms)
            )
            part = CheckpointPart(store, info, hold=hold)
            if part.size_bytes != info.size_bytes:
                raise damaged_checkpoint(
                    self.files.names[0],
                    f"Its sidecar {path!r} has {part.size_bytes} bytes instead of {info.size_bytes}.",
                )
            return part
        except ObjectNotFoundError as error:
            # Reported as damage, since the table may be readable without this checkpoint.
            raise damaged_checkpoint(self.files.names[0], f"Its sidecar {path!r} does not exist.") from error

    def _sidecar_path(self, raw: str, root_uri: str) -> str:
        """The store path of a sidecar from the path in the log: a file name or an absolute URI."""
        is_absolute = uri_scheme(raw) is not None or raw.startswith("/")
        try:
            path = resolve_data_path(raw if is_absolute else f"{SIDECAR_DIRECTORY}/{raw}", root_uri=root_uri)
        except PathEscapeError as error:
            raise damaged_checkpoint(
                self.files.names[0], f"The path of a sidecar is invalid: {error.problem.rstrip('.')}."
            ) from error
        if posixpath.dirname(path) != SIDECAR_DIRECTORY:
            raise damaged_checkpoint(
                self.files.names[0], f"Its sidecar {raw!r} is not in {SIDECAR_DIRECTORY}."
            )
        return path


def _present_rows(
    part: CheckpointPart, group: int, kind: str, columns: Sequence[str], key: str
) -> list[dict[str, Any]]:
    """The actions of a kind in a row group. Stops after the number of actions that the footer states."""
    count = part.present_rows(group, KEY_LEAVES[kind])
    actions: list[dict[str, Any]] = []
    for rows in part.stream(group, kind, columns):
        try:
            # Damaged pages decode to invalid strings.
            rows.validate(full=True)
            with_key = pc.is_valid(pc.struct_field(rows, key))
            _require_empty(rows.filter(pc.invert(with_key)), kind, part.path)
            actions += rows.filter(with_key).to_pylist()
        except UNREADABLE as error:
            raise damaged_checkpoint(part.path, f"The column {kind} is invalid: {error}.") from error
        if count is not None and len(actions) >= count:
            break
    return actions


def _require_empty(rows: pa.StructArray, kind: str, path: str) -> None:
    """Require that rows without the key have no other field: they belong to actions of other kinds."""
    for index in range(rows.type.num_fields):
        item = rows.type.field(index)
        if not pa.types.is_nested(item.type) and pc.struct_field(rows, index).null_count < len(rows):
            raise damaged_checkpoint(path, f"A {kind!r} action has the field {item.name!r} but no key.")


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
        raise damaged_checkpoint(path, f"The field {kind}.{error}.") from None
    return fields


def _plain(value: Any, name: str) -> Any:
    """The value with an Arrow map, which is a list of pairs, as a dictionary. Other values stay unchanged."""
    is_map = name in ("configuration", "options") and isinstance(value, list)
    return dict(value) if is_map and all(isinstance(item, tuple) for item in value) else value
