"""A run of live files as columns, in memory or still in a checkpoint."""

from __future__ import annotations

import threading
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from delta_core.actions.arrow_schema import DELETION_VECTOR_TYPE, LIVE_FILE_SCHEMA, STRING_MAP
from delta_core.log.checkpoint_reader import CheckpointPart, damaged_checkpoint
from delta_core.replay.parsed_statistics import statistics_to_json

# Read together when a chunk is opened: identity, partition and size answer most questions.
EAGER_COLUMNS = ("path", "partition_values", "size_bytes")

_LEAVES = {
    "path": "path",
    "partition_values": "partitionValues",
    "size_bytes": "size",
    "modification_time_ms": "modificationTime",
    "stats": "stats",
    "tags": "tags",
    "deletion_vector": "deletionVector",
    "base_row_id": "baseRowId",
    "default_row_commit_version": "defaultRowCommitVersion",
    "clustering_provider": "clusteringProvider",
}
_DELETION_VECTOR_LEAVES = ("storageType", "pathOrInlineDv", "offset", "sizeInBytes", "cardinality")


class FileChunk(Protocol):
    """Columns of LIVE_FILE_SCHEMA, each available by itself."""

    @property
    def num_rows(self) -> int:
        """Rows, dead ones included."""
        ...

    def column(self, name: str) -> pa.Array:
        """One column. A map column may have dictionary-encoded keys and items."""
        ...

    def maybe_has_deletion_vectors(self) -> bool:
        """False when no row can have one."""
        ...


class MemoryChunk:
    """Files that commits added."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch

    @property
    def num_rows(self) -> int:
        """Rows, dead ones included."""
        return int(self.batch.num_rows)

    def column(self, name: str) -> pa.Array:
        """One column."""
        return self.batch.column(name)

    def maybe_has_deletion_vectors(self) -> bool:
        """False when no row has one."""
        vectors = self.batch.column("deletion_vector")
        return bool(vectors.null_count < len(vectors))


_Rows = range | npt.NDArray[np.int64] | None
"""Rows of a row group: a run of them, some of them by number, or all (None)."""


def _chosen(rows: npt.NDArray[np.int64]) -> _Rows:
    # Writers put the other actions before or after the files, so the files are nearly always one run.
    if len(rows) and rows[-1] - rows[0] + 1 == len(rows):
        return range(int(rows[0]), int(rows[-1]) + 1)
    return rows


def _cut(values: pa.Array, rows: _Rows) -> pa.Array:
    if rows is None:
        return values
    if isinstance(rows, range):
        return values.slice(rows.start, len(rows))
    return values.take(pa.array(rows))


class CheckpointChunk:
    """The files of one row group; columns are decoded when first asked for, and kept."""

    def __init__(self, part: CheckpointPart, row_group: int) -> None:
        self._part = part
        self._row_group = row_group
        self._lock = threading.Lock()
        self._columns: dict[str, pa.Array] = {}
        present = part.present_rows(row_group, "add.path")
        total = part.metadata.row_group(row_group).num_rows
        self._rows: _Rows = None
        rows = part.read(row_group, "add", [_LEAVES[name] for name in EAGER_COLUMNS if self._has(name)])
        if present != total:
            valid = pc.is_valid(pc.struct_field(rows, "path"))
            self._rows = _chosen(np.flatnonzero(valid.to_numpy(zero_copy_only=False)))
        self._num_rows = total if self._rows is None else len(self._rows)
        for name in EAGER_COLUMNS:
            self._columns[name] = self._convert(name, rows)
        self._check()

    @property
    def num_rows(self) -> int:
        """Rows, dead ones included."""
        return self._num_rows

    def column(self, name: str) -> pa.Array:
        """One column. Raises CorruptLogError when it cannot be decoded."""
        with self._lock:
            found = self._columns.get(name)
            if found is None:
                found = self._columns[name] = self._decode(name)
            return found

    def maybe_has_deletion_vectors(self) -> bool:
        """False when the footer proves that no row has one."""
        return self._part.present_rows(self._row_group, "add.deletionVector.storageType") != 0

    def _decode(self, name: str) -> pa.Array:
        rows = None
        if self._has(name):
            rows = self._part.read(self._row_group, "add", [_LEAVES[name]])
        found = self._convert(name, rows)
        if name == "stats" and found.null_count == len(found) and self._part.has("add.stats_parsed"):
            return self._statistics_from_columns()
        return found

    def _statistics_from_columns(self) -> pa.Array:
        """The JSON form of statistics that the checkpoint has as columns only."""
        rows = self._part.read(self._row_group, "add", ["stats_parsed"])
        try:
            values = pc.struct_field(rows, "stats_parsed")
            values = _cut(values, self._rows)
            return statistics_to_json(values)
        except (pa.ArrowException, KeyError, TypeError) as error:
            raise damaged_checkpoint(self._part.path, f"add.stats_parsed: {error}") from error

    def _has(self, name: str) -> bool:
        return self._part.has(f"add.{_LEAVES[name]}")

    def _convert(self, name: str, rows: pa.StructArray | None) -> pa.Array:
        wanted = LIVE_FILE_SCHEMA.field(name).type
        if rows is None or not self._has(name):
            return pa.nulls(self._num_rows, wanted)
        try:
            values = pc.struct_field(rows, _LEAVES[name])
            values = _cut(values, self._rows)
            # Damaged pages decode to invalid text and to codes beyond their dictionary.
            values.validate(full=True)
            if wanted == DELETION_VECTOR_TYPE:
                return deletion_vectors(values)
            if pa.types.is_map(wanted):
                return values if name == "partition_values" else plain_map(values)
            return values if values.type == wanted else values.cast(wanted)
        except (pa.ArrowException, KeyError, TypeError) as error:
            raise damaged_checkpoint(self._part.path, f"add.{_LEAVES[name]}: {error}") from error

    def _check(self) -> None:
        sizes = self._columns["size_bytes"]
        if sizes.null_count:
            raise damaged_checkpoint(self._part.path, "a file has no size")
        if len(sizes) and pc.min(sizes).as_py() < 0:
            raise damaged_checkpoint(self._part.path, "a file has a negative size")


def plain_map(values: pa.MapArray) -> pa.MapArray:
    """A map whose keys and items may be dictionary-encoded, as map<string, string>."""
    if values.type == STRING_MAP:
        return values
    if len(values) == 0:
        return pa.array([], STRING_MAP)
    offsets = values.offsets
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    # `keys` and `items` belong to the whole buffer, whatever slice the map is.
    keys = _plain_strings(values.keys, first, last)
    items = _plain_strings(values.items, first, last)
    # A null bitmap cannot go with offsets that are themselves a slice.
    moved = offsets if first == 0 and offsets.offset == 0 else pc.subtract(offsets, offsets[0])
    if values.null_count == 0:
        return pa.MapArray.from_arrays(moved, keys, items, STRING_MAP)
    return pa.MapArray.from_arrays(moved, keys, items, STRING_MAP, mask=pc.is_null(values))


def _plain_strings(values: pa.Array, first: int, last: int) -> pa.Array:
    cut = values if len(values) == last - first else values.slice(first, last - first)
    return cut if cut.type == pa.string() else cut.cast(pa.string())


def map_values(values: pa.MapArray, key: str) -> pa.Array:
    """The items of one key of a map column, as a dictionary-encoded or plain string array.

    Dictionary-encoded maps whose rows all have the same keys in the same order, which is what writers
    produce, cost one strided view.
    """
    rows = len(values)
    if rows == 0:
        return pa.array([], pa.string())
    if pa.types.is_dictionary(values.type.item_type) and values.null_count == 0:
        found = _strided(values, key)
        if found is not None:
            return found
    return pc.map_lookup(plain_map(values), pa.scalar(key, pa.string()), "last")


def _strided(values: pa.MapArray, key: str) -> pa.Array | None:
    rows = len(values)
    offsets = values.offsets.to_numpy()
    first, last = int(offsets[0]), int(offsets[-1])
    width, rest = divmod(last - first, rows)
    if rest or width == 0 or not (np.diff(offsets) == width).all():
        return None
    keys, items = (side.slice(first, last - first) for side in (values.keys, values.items))
    if not pa.types.is_dictionary(keys.type):
        keys = keys.dictionary_encode()
    codes = keys.indices.to_numpy(zero_copy_only=False).reshape(rows, width)
    if not (codes[:1] == codes).all():
        return None
    names = [keys.dictionary[int(code)].as_py() for code in codes[0]]
    if names.count(key) != 1:
        return pa.nulls(rows, pa.string()) if key not in names else None
    picked = np.arange(names.index(key), rows * width, width)
    return items.take(pa.array(picked))


def deletion_vectors(values: pa.StructArray) -> pa.StructArray:
    """A log's deletion vector descriptors as DELETION_VECTOR_TYPE."""
    fields = [DELETION_VECTOR_TYPE.field(index) for index in range(DELETION_VECTOR_TYPE.num_fields)]
    present = {values.type.field(index).name for index in range(values.type.num_fields)}
    children = [
        pc.struct_field(values, leaf).cast(item.type) if leaf in present else pa.nulls(len(values), item.type)
        for leaf, item in zip(_DELETION_VECTOR_LEAVES, fields, strict=True)
    ]
    return pa.StructArray.from_arrays(children, fields=fields, mask=pc.is_null(children[0]))
