"""Statistics and partition values as typed columns of a checkpoint (PROTOCOL.md, "Checkpoints").

`stats_parsed` and `partitionValues_parsed` use physical column names. A string that is not a valid value of
its column's type becomes null. A null value is unknown, so readers skip no file because of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from delta_core.actions.checkpoint_schema import PARSED_PARTITION_VALUES, PARSED_STATISTICS
from delta_core.errors import CorruptLogError, InvalidTableError
from delta_core.replay.map_strings import map_values
from delta_core.scan.statistics import has_bounds, stated_statistics
from delta_core.schema.arrow import type_to_arrow
from delta_core.schema.partition_values import parse_column
from delta_core.schema.types import DataType
from delta_core.snapshot.snapshot import Snapshot
from delta_core.snapshot.table_definition import clustering_of
from delta_core.table_features.feature import writer_features
from delta_core.table_features.stats_leaves import all_leaves, stats_leaves

Path = tuple[str, ...]
Tree = dict[str, "pa.Array | Tree"]

_TIGHT_BOUNDS = "tightBounds"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedColumns:
    """The typed columns of a table's checkpoints.

    Attributes:
        leaves: the types of the columns with statistics, by physical path.
        partitions: the types of the partition columns, by physical name.
        has_tight_bounds: whether the statistics contain `tightBounds`, as in tables with deletion vectors.
    """

    leaves: Mapping[Path, DataType] = field(default_factory=dict)
    partitions: Mapping[str, DataType] = field(default_factory=dict)
    has_tight_bounds: bool = False

    @classmethod
    def of(cls, snapshot: Snapshot) -> ParsedColumns:
        """The typed columns of a snapshot's table: only the columns for which statistics are collected.

        Clustering columns are always included, independent of the table's properties.
        """
        schema, mapping = snapshot.schema, snapshot.column_mapping
        every = all_leaves(schema, snapshot.properties, partition_columns=snapshot.partition_columns)
        collected = {
            leaf.path
            for leaf in stats_leaves(
                schema, snapshot.properties, partition_columns=snapshot.partition_columns
            )
        }
        clustered = _clustered_by(snapshot)
        physical = {leaf.path: mapping.physical_path(leaf.path, schema) for leaf in every}
        partitions = {}
        for name in snapshot.partition_columns:
            column = schema.find(name)
            if column is not None:
                partitions[mapping.physical_name(column)] = column.data_type
        return cls(
            leaves={
                physical[leaf.path]: leaf.data_type
                for leaf in every
                if leaf.path in collected or physical[leaf.path] in clustered
            },
            partitions=partitions,
            has_tight_bounds="deletionVectors" in writer_features(snapshot.protocol),
        )

    @property
    def statistics_type(self) -> pa.StructType:
        """The type of `stats_parsed`."""
        return self._statistics(pa.array([], pa.string())).type

    @property
    def partition_type(self) -> pa.StructType | None:
        """The type of `partitionValues_parsed`; None if the table is not partitioned."""
        if not self.partitions:
            return None
        return pa.struct([(name, type_to_arrow(kind)) for name, kind in self.partitions.items()])

    def added_to(self, files: pa.RecordBatch) -> pa.RecordBatch:
        """A batch of LIVE_FILE_SCHEMA with the typed columns appended."""
        files = files.append_column(PARSED_STATISTICS, self._statistics(files.column("stats")))
        if self.partitions:
            parsed = self._partition_values(files.column("partition_values"))
            files = files.append_column(PARSED_PARTITION_VALUES, parsed)
        return files

    def _statistics(self, strings: pa.Array) -> pa.StructArray:
        parsed = stated_statistics(strings, self.leaves)
        minimums, maximums, nulls = Tree(), Tree(), Tree()
        for path, kind in self.leaves.items():
            column = parsed.columns[path]
            if has_bounds(kind):
                for side, values in ((minimums, column.minimum), (maximums, column.maximum)):
                    _put(side, path, _of_type(values, type_to_arrow(kind), len(strings)))
            _put(nulls, path, _of_type(column.null_count, pa.int64(), len(strings)))
        tree: Tree = {"numRecords": parsed.num_records}
        # Parquet has no structs without fields.
        tree |= {
            name: side
            for name, side in (("minValues", minimums), ("maxValues", maximums), ("nullCount", nulls))
            if side
        }
        if self.has_tight_bounds:
            tree[_TIGHT_BOUNDS] = _tight_bounds(strings)
        return _struct(tree, mask=pc.is_null(strings))

    def _partition_values(self, values: pa.MapArray) -> pa.StructArray:
        columns: Tree = {
            name: _parsed_strings(map_values(values, name), kind) for name, kind in self.partitions.items()
        }
        return _struct(columns)


def _clustered_by(snapshot: Snapshot) -> frozenset[Path]:
    try:
        clustering = clustering_of(snapshot)
    except InvalidTableError:
        # Without valid clustering columns no statistics are needed. Code that needs them raises the error.
        return frozenset()
    return frozenset(() if clustering is None else clustering.columns)


def _parsed_strings(strings: pa.StringArray, kind: DataType) -> pa.Array:
    """Strings as values of their column's type. Each distinct string is parsed once."""
    coded = strings.dictionary_encode()
    try:
        distinct = parse_column(coded.dictionary, kind)
    except CorruptLogError:
        distinct = pa.concat_arrays(
            [pa.array([], type_to_arrow(kind)), *(_parsed_or_null(one, kind) for one in coded.dictionary)]
        )
    return distinct.take(coded.indices)


def _parsed_or_null(string: pa.StringScalar, kind: DataType) -> pa.Array:
    try:
        return parse_column(pa.array([string.as_py()], pa.string()), kind)
    except CorruptLogError:
        return pa.nulls(1, type_to_arrow(kind))


def _tight_bounds(strings: pa.StringArray) -> pa.BooleanArray:
    """The `tightBounds` of each file's statistics; null if they do not contain it."""
    stated: list[bool | None] = [None] * len(strings)
    mentions = pc.fill_null(pc.match_substring(strings, _TIGHT_BOUNDS), False)
    for row in pc.indices_nonzero(mentions).to_pylist():
        try:
            document = orjson.loads(strings[row].as_py())
        except orjson.JSONDecodeError:
            continue
        value = document.get(_TIGHT_BOUNDS) if isinstance(document, dict) else None
        stated[row] = value if isinstance(value, bool) else None
    return pa.array(stated, pa.bool_())


def _of_type(values: pa.Array | None, kind: pa.DataType, length: int) -> pa.Array:
    return pa.nulls(length, kind) if values is None else values


def _put(tree: Tree, path: Path, values: pa.Array) -> None:
    for part in path[:-1]:
        below = tree.setdefault(part, {})
        assert isinstance(below, dict)
        tree = below
    tree[path[-1]] = values


def _struct(tree: Tree, mask: pa.BooleanArray | None = None) -> pa.StructArray:
    children = [_struct(child) if isinstance(child, dict) else child for child in tree.values()]
    return pa.StructArray.from_arrays(children, names=list(tree), mask=mask)
