"""Parquet checkpoints, leaf by leaf (PROTOCOL.md, "Checkpoints").

Only the leaves that are asked for are read, one row group at a time: reading a nested column by its
top-level name costs all of its leaves, and dictionary-read map leaves cannot be joined across row
groups. Footer statistics tell which row groups hold which actions; where they are missing, all do.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from delta_core.actions.json_codec import RawAction, iter_lines, parse_line
from delta_core.actions.validation import CHECKS, InvalidAction
from delta_core.errors import CorruptLogError
from delta_core.log.listing import CheckpointFiles
from delta_core.log.log_path import LogFileKind
from delta_core.storage.log_store import LogStore, ObjectInfo

# The leaf that is never null where an action of the kind is present.
KEY_LEAVES = {
    "add": "add.path",
    "remove": "remove.path",
    "metaData": "metaData.id",
    "protocol": "protocol.minReaderVersion",
    "txn": "txn.appId",
    "domainMetadata": "domainMetadata.domain",
    "sidecar": "sidecar.path",
}


class CheckpointPart:
    """One Parquet file of a checkpoint. Holds it open, so a replaced or deleted file stays readable."""

    def __init__(self, store: LogStore, info: ObjectInfo) -> None:
        self.path = info.path
        self.size_bytes = info.size_bytes
        self._lock = threading.Lock()
        source = store.open_input(info.path)
        try:
            metadata = pq.read_metadata(source)
            leaves = [metadata.schema.column(index).path for index in range(metadata.num_columns)]
            maps = [leaf for leaf in leaves if leaf.startswith("add.partitionValues.")]
            self._file = pq.ParquetFile(
                source, metadata=metadata, read_dictionary=maps, page_checksum_verification=True
            )
        except (pa.ArrowException, OSError, ValueError) as error:
            raise self._damaged(error) from error
        self.metadata = metadata
        self.leaves = {leaf: index for index, leaf in enumerate(leaves)}

    def has(self, column: str) -> bool:
        """True when the file has the leaf, or leaves below it."""
        return column in self.leaves or any(leaf.startswith(column + ".") for leaf in self.leaves)

    def present_rows(self, row_group: int, leaf: str) -> int | None:
        """How many rows of the row group have a value in the leaf; None when the footer does not say."""
        index = self.leaves.get(leaf)
        if index is None:
            return 0
        group = self.metadata.row_group(row_group)
        statistics = group.column(index).statistics
        if statistics is None or not statistics.has_null_count:
            return None
        return int(group.num_rows - statistics.null_count)

    def row_groups_with(self, kind: str) -> list[int]:
        """The row groups that may hold actions of a kind."""
        leaf = KEY_LEAVES[kind]
        return [group for group in range(self.metadata.num_row_groups) if self.present_rows(group, leaf) != 0]

    def read(self, row_group: int, kind: str, columns: Sequence[str]) -> pa.StructArray:
        """The named fields of one kind of action in one row group; rows of other kinds are null.

        Raises:
            CorruptLogError: the file cannot be decoded.
        """
        wanted = [f"{kind}.{name}" for name in columns]
        try:
            with self._lock:
                table = self._file.read_row_group(row_group, columns=wanted, use_threads=False)
            column = table.column(kind)
            return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
        except (pa.ArrowException, OSError, ValueError, KeyError, IndexError, NotImplementedError) as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> CorruptLogError:
        return damaged_checkpoint(self.path, str(error).split("\n")[0])


def damaged_checkpoint(path: str, cause: str) -> CorruptLogError:
    """The error of a checkpoint that cannot be used."""
    return CorruptLogError(
        f"The checkpoint {path!r} cannot be read.",
        cause=cause,
        fix="Delete the checkpoint if the commits before it still exist, else restore it from a backup.",
    )


class CheckpointReader:
    """A complete checkpoint."""

    def __init__(
        self,
        files: CheckpointFiles,
        parts: Sequence[CheckpointPart],
        json_actions: Sequence[RawAction] = (),
    ) -> None:
        self.files = files
        self.parts = tuple(parts)
        self._json_actions = tuple(json_actions)

    @classmethod
    def open(cls, store: LogStore, files: CheckpointFiles) -> CheckpointReader:
        """Read the footers. One or two requests a part.

        Raises:
            CorruptLogError: a part is no Parquet file.
        """
        parquet = [part for part in files.parts if part.path.endswith(".parquet")]
        lines = [
            action
            for part in files.parts
            if part not in parquet
            for number, line in iter_lines(store.read(part.path))
            if (action := parse_line(line, number=number, path=part.path)) is not None
        ]
        return cls(files, [CheckpointPart(store, part) for part in parquet], lines)

    @property
    def is_v2(self) -> bool:
        """True when the checkpoint's files may be in sidecars (PROTOCOL.md, "V2 Spec")."""
        if self.files.kind is LogFileKind.V2_CHECKPOINT:
            return True
        return any(part.row_groups_with("sidecar") for part in self.parts if part.has("sidecar"))

    @property
    def has_deletion_vectors(self) -> bool:
        """False when the footers prove that no file has a deletion vector."""
        leaf = "add.deletionVector.storageType"
        return any(
            part.present_rows(group, leaf) != 0
            for part in self.parts
            for group in part.row_groups_with("add")
        )

    def actions(self, kind: str) -> Iterator[dict[str, Any]]:
        """The actions of one kind that is not a file, as checked JSON-like fields.

        Raises:
            CorruptLogError: damaged, or a field is missing.
        """
        key = KEY_LEAVES[kind].partition(".")[2]
        yield from (action.fields for action in self._json_actions if action.kind == kind)
        for part in self.parts:
            present = sorted({leaf.split(".")[1] for leaf in part.leaves if leaf.startswith(kind + ".")})
            for group in part.row_groups_with(kind):
                rows = part.read(group, kind, present)
                for row in rows.filter(pc.is_valid(pc.struct_field(rows, key))).to_pylist():
                    yield _checked(kind, row, part.path)


def _checked(kind: str, row: dict[str, Any], path: str) -> dict[str, Any]:
    fields = {name: _plain(value, name) for name, value in row.items() if value is not None}
    if isinstance(fields.get("format"), dict):
        fields["format"] = {name: _plain(value, name) for name, value in fields["format"].items()}
    try:
        CHECKS[kind](fields)
    except InvalidAction as error:
        raise damaged_checkpoint(path, f"{kind}.{error}") from None
    return fields


def _plain(value: Any, name: str) -> Any:
    """Arrow gives a map as a list of pairs."""
    return dict(value) if name in ("configuration", "options") and isinstance(value, list) else value
