"""Statistics of a data file: collected from its rows, its footer or the encoder, and written as JSON.

`table_features.stats_leaves` decides which columns get statistics.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from delta_core.scan.footer_statistics import footer_leaf, footer_positions
from delta_core.schema.column_paths import Path
from delta_core.schema.types import (
    DOUBLE,
    FLOAT,
    STRING,
    TIMESTAMP,
    VARIANT,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructType,
)
from delta_core.table_features.stats_leaves import (
    STRING_PREFIX_LENGTH,
    SkippingProperties,
    StatsLeaf,
    stats_leaves,
)

_FLOATING = (FLOAT, DOUBLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStatistics:
    """The statistics of one file's columns, by path.

    Attributes:
        minimums, maximums: in their JSON form. Decimals are exact in this form, but not after parsing JSON.
        nan_free: floating-point columns that contain no NaN.
    """

    num_records: int
    minimums: Mapping[Path, object] = field(default_factory=dict)
    maximums: Mapping[Path, object] = field(default_factory=dict)
    null_counts: Mapping[Path, int] = field(default_factory=dict)
    nan_free: tuple[Path, ...] = ()

    def with_columns(self, other: FileStatistics) -> FileStatistics:
        """The statistics of the same file, with the values of `other` where it has any."""
        return FileStatistics(
            num_records=self.num_records,
            minimums={**self.minimums, **other.minimums},
            maximums={**self.maximums, **other.maximums},
            null_counts={**self.null_counts, **other.null_counts},
            nan_free=tuple(dict.fromkeys((*self.nan_free, *other.nan_free))),
        )

    def to_json(self, *, tight_bounds: bool | None = None) -> str:
        """The statistics as JSON; see `stats_json`."""
        return stats_json(
            num_records=self.num_records,
            minimums=self.minimums,
            maximums=self.maximums,
            null_counts=self.null_counts,
            nan_free=self.nan_free,
            tight_bounds=tight_bounds,
        )


class StatisticsAccumulator:
    """The statistics of rows that arrive in parts."""

    def __init__(
        self, leaves: Iterable[StatsLeaf], *, bounds_elsewhere: Collection[tuple[str, ...]] = ()
    ) -> None:
        """Collect statistics of leaves; for leaves in `bounds_elsewhere`, `update` only counts nulls."""
        self._leaves = [leaf for leaf in leaves if leaf.data_type != VOID]
        self._bounds_elsewhere = frozenset(bounds_elsewhere)
        self._num_records = 0
        self._null_counts = {leaf.path: 0 for leaf in self._leaves}
        self._minimums: dict[tuple[str, ...], Any] = {}
        self._maximums: dict[tuple[str, ...], Any] = {}
        self._has_nan: set[tuple[str, ...]] = set()
        self._unbounded: set[tuple[str, ...]] = set()

    @property
    def num_records(self) -> int:
        """The number of rows that were added until now."""
        return self._num_records

    def update(self, data: pa.Table | pa.RecordBatch) -> None:
        """Add rows. They must have the leaves' columns under their exact names; a missing column is null."""
        self._num_records += data.num_rows
        present = set(data.schema.names)
        for leaf in self._leaves:
            if leaf.path[0] not in present:
                self._null_counts[leaf.path] += data.num_rows
                continue
            column = leaf_column(data, leaf)
            self._null_counts[leaf.path] += column.null_count
            if leaf.has_bounds and leaf.path not in self._bounds_elsewhere:
                self.update_bounds(leaf, column)

    def update_bounds(self, leaf: StatsLeaf, column: pa.Array | pa.ChunkedArray) -> None:
        """Widen a leaf's bounds to contain values. Does not count nulls."""
        if leaf.path in self._has_nan or column.null_count == len(column):
            return
        if leaf.data_type in _FLOATING and pc.any(pc.is_nan(column)).as_py():
            # Bounds without NaN would be wrong, and JSON has no form for NaN.
            self._has_nan.add(leaf.path)
            return
        bounds = pc.min_max(column)
        try:
            low, high = bounds["min"].as_py(), bounds["max"].as_py()
        except (ValueError, OverflowError):
            # Dates and timestamps after the year 9999 have no ISO form.
            self.withhold_bounds(leaf)
            return
        self.merge_bounds(leaf, low, high)

    def merge_bounds(self, leaf: StatsLeaf, low: Any, high: Any) -> None:
        """Widen a leaf's bounds to contain all values between two Python values of its type."""
        known = leaf.path in self._minimums
        self._minimums[leaf.path] = min(low, self._minimums[leaf.path]) if known else low
        self._maximums[leaf.path] = max(high, self._maximums[leaf.path]) if known else high

    def withhold_bounds(self, leaf: StatsLeaf) -> None:
        """Omit a leaf's bounds, since some values have no known bound."""
        self._unbounded.add(leaf.path)

    def found(self) -> FileStatistics:
        """The statistics of all rows that were added until now."""
        minimums: dict[Path, object] = {}
        maximums: dict[Path, object] = {}
        for leaf in self._leaves:
            path = leaf.path
            if path in self._has_nan | self._unbounded or path not in self._minimums:
                continue
            file_bounds(
                leaf, self._minimums[path], self._maximums[path], minimums=minimums, maximums=maximums
            )
        return FileStatistics(
            num_records=self._num_records,
            minimums=minimums,
            maximums=maximums,
            null_counts=dict(self._null_counts),
            nan_free=tuple(
                leaf.path
                for leaf in self._leaves
                if leaf.data_type in _FLOATING and leaf.path not in self._has_nan
            ),
        )

    def to_json(self, *, tight_bounds: bool | None = None) -> str:
        """The statistics of all rows that were added until now, as JSON."""
        return self.found().to_json(tight_bounds=tight_bounds)


def file_bounds(
    leaf: StatsLeaf,
    low: object,
    high: object,
    *,
    minimums: dict[Path, object],
    maximums: dict[Path, object],
) -> None:
    """Put a leaf's least and greatest value into a file's bounds, in their JSON form if they have one."""
    _put(minimums, leaf.path, _bound(low, leaf, maximum=False))
    _put(maximums, leaf.path, _bound(high, leaf, maximum=True))


def leaf_column(data: pa.Table | pa.RecordBatch, leaf: StatsLeaf) -> pa.Array | pa.ChunkedArray:
    """A leaf's values, null where a struct around it is null. The data must have its top-level column."""
    column = data.column(leaf.path[0])
    return pc.struct_field(column, list(leaf.path[1:])) if len(leaf.path) > 1 else column


def statistics_from_footer(
    metadata: pq.FileMetaData,
    schema: StructType,
    properties: SkippingProperties | None = None,
    *,
    partition_columns: Sequence[str] = (),
    tight_bounds: bool | None = None,
) -> str:
    """The statistics JSON of a file, from its Parquet footer alone. Reads no rows.

    A bound or null count that is missing in a row group is omitted. Values that cannot be trusted are
    omitted, too: NaN, and floating-point bounds of writers that hide NaN; INT96 timestamps; truncated string
    bounds; null counts of arrays and maps (Parquet counts elements) and of variants.

    Args:
        metadata: the footer, as `pyarrow.parquet.read_metadata` returns it.
        schema: the table's schema.
        properties: which columns get statistics; None for the default.
        partition_columns: the partition columns, which get no statistics.
        tight_bounds: see `stats_json`.
    """
    leaves = stats_leaves(schema, properties, partition_columns=partition_columns)
    return statistics_of_leaves(metadata, leaves).to_json(tight_bounds=tight_bounds)


def statistics_of_leaves(metadata: pq.FileMetaData, leaves: Iterable[StatsLeaf]) -> FileStatistics:
    """The statistics of known leaves, from a footer as in `statistics_from_footer`, by paths in the file."""
    minimums: dict[Path, object] = {}
    maximums: dict[Path, object] = {}
    null_counts: dict[Path, int] = {}
    nan_free: list[Path] = []
    positions = footer_positions(metadata)
    for leaf in leaves:
        # An array, map or variant is one leaf here, but several columns in Parquet.
        if leaf.data_type in (VOID, VARIANT) or isinstance(leaf.data_type, ArrayType | MapType):
            continue
        position = positions.get(".".join(leaf.path).casefold())
        if position is None:
            # A column that is missing in a file is null in every row.
            null_counts[leaf.path] = metadata.num_rows
            continue
        if position < 0:
            continue
        groups = [
            footer_leaf(metadata, group, position, leaf.data_type) for group in range(metadata.num_row_groups)
        ]
        counts = [group.null_count for group in groups]
        if all(count is not None for count in counts):
            null_counts[leaf.path] = sum(count or 0 for count in counts)
        if not leaf.has_bounds:
            continue
        filled = [group for group in groups if not group.all_null]
        if filled and all(group.minimum is not None for group in filled):
            _put(minimums, leaf.path, _bound(min(g.minimum for g in filled), leaf, maximum=False))
        if filled and all(group.maximum is not None for group in filled):
            _put(maximums, leaf.path, _bound(max(g.maximum for g in filled), leaf, maximum=True))
            if leaf.data_type in _FLOATING:
                nan_free.append(leaf.path)
    return FileStatistics(
        num_records=metadata.num_rows,
        minimums=minimums,
        maximums=maximums,
        null_counts=null_counts,
        nan_free=tuple(nan_free),
    )


# Arrow omits longer bounds from the footer.
_MOST_FOOTER_BYTES = 4096


class EncoderBounds:
    """The bounds of one file that come from its footer, row group by row group.

    The encoder compares all values to fill the footer. A second comparison of strings and decimals for the
    log would take a twelfth of the time of writing a file. Bounds of other types cost next to nothing.
    """

    def __init__(self, leaves: Iterable[StatsLeaf], schema: pa.Schema) -> None:
        """Select the leaves of a file with this schema whose bounds the footer can provide."""
        # A footer identifies columns by dotted paths, which are unique when no name contains a dot.
        plain = not any(_has_dot(field) for field in schema)
        self._leaves = [leaf for leaf in leaves if plain and leaf.has_bounds and _has_costly_bounds(leaf)]
        self._groups = 0
        self._seen: set[tuple[int, tuple[str, ...]]] = set()

    @property
    def paths(self) -> frozenset[tuple[str, ...]]:
        """The leaves whose bounds come from `add_group` and `add_footer`, and need no other computation."""
        return frozenset(leaf.path for leaf in self._leaves)

    def add_group(self, group: pa.Table, statistics: StatisticsAccumulator) -> None:
        """Add the bounds that the footer will omit for a row group that is about to be written."""
        for leaf in self._leaves:
            if leaf.data_type == STRING and leaf.path[0] in group.schema.names:
                column = leaf_column(group, leaf)
                longest = pc.max(pc.binary_length(column)).as_py()
                if longest is not None and longest > _MOST_FOOTER_BYTES:
                    statistics.update_bounds(leaf, column)
                    self._seen.add((self._groups, leaf.path))
        self._groups += 1

    def add_footer(self, footer: pq.FileMetaData, statistics: StatisticsAccumulator) -> None:
        """Add the footer's bounds of all row groups whose bounds `add_group` did not add.

        A leaf gets no bounds in the log if a bound is missing in the footer.
        """
        positions = footer_positions(footer)
        for leaf in self._leaves:
            position = positions.get(".".join(leaf.path).casefold(), -1)
            if position < 0:
                statistics.withhold_bounds(leaf)
                continue
            for group in range(footer.num_row_groups):
                if (group, leaf.path) in self._seen:
                    continue
                bounds = footer_leaf(footer, group, position, leaf.data_type)
                if bounds.all_null:
                    continue
                if bounds.minimum is None or bounds.maximum is None:
                    statistics.withhold_bounds(leaf)
                else:
                    statistics.merge_bounds(leaf, bounds.minimum, bounds.maximum)


_ASCII_TIE_BREAKER = "\x7f"
_TIE_BREAKER = "\U0010ffff"
_EPOCH = dt.datetime(1970, 1, 1)


def truncate_minimum(value: str, prefix_length: int = STRING_PREFIX_LENGTH) -> str:
    """A string not greater than `value`, with at most `prefix_length` characters."""
    return value[:prefix_length]


def truncate_maximum(value: str, prefix_length: int = STRING_PREFIX_LENGTH) -> str | None:
    """A string not less than every string with this maximum, or None when none is short enough.

    A character is appended to the prefix that sorts after the first truncated character, in the order of
    UTF-8 bytes. When the truncated character is the greatest possible one, the prefix is extended.
    """
    if len(value) <= prefix_length:
        return value
    for length in range(prefix_length, 2 * prefix_length + 1):
        if length >= len(value):
            return value
        cut = value[length]
        if cut < _ASCII_TIE_BREAKER:
            return value[:length] + _ASCII_TIE_BREAKER
        if cut != _TIE_BREAKER:
            return value[:length] + _TIE_BREAKER
    return None


def bound_to_json(
    value: object, data_type: DataType, *, maximum: bool, prefix_length: int = STRING_PREFIX_LENGTH
) -> object | None:
    """A minimum or maximum in its JSON form; None when it must be omitted.

    The result also bounds every value that the exact bound does. Strings are truncated to a prefix;
    timestamps are rounded to milliseconds, the maximum up and the minimum down. NaN and infinities have no
    JSON form.
    """
    match value:
        case None:
            return None
        case str():
            cut = truncate_maximum if maximum else truncate_minimum
            return cut(value, prefix_length)
        case float():
            if value == 0:
                # Some readers order the two zeros, and both must lie within the bounds.
                return 0.0 if maximum else -0.0
            return value if math.isfinite(value) else None
        case Decimal():
            return orjson.Fragment(format(value, "f").encode())
        case dt.datetime():
            return _timestamp_string(value, zoned=data_type == TIMESTAMP, up=maximum)
        case dt.date():
            return value.isoformat()
    return value


def stats_json(
    *,
    num_records: int,
    minimums: Mapping[tuple[str, ...], object],
    maximums: Mapping[tuple[str, ...], object],
    null_counts: Mapping[tuple[str, ...], int],
    nan_free: Sequence[tuple[str, ...]] = (),
    tight_bounds: bool | None = None,
) -> str:
    """The statistics of one file as JSON (PROTOCOL.md, "Per-file Statistics").

    Args:
        nan_free: floating-point columns that contain no NaN. Written as `nanCount` zero, an extension of this
            library that other readers ignore. Without it a maximum does not exclude NaN, which sorts after
            all numbers and which some writers omit from their bounds.
        tight_bounds: written when not None (tables with deletion vectors).
    """
    document: dict[str, Any] = {
        "numRecords": num_records,
        "minValues": _nested(minimums),
        "maxValues": _nested(maximums),
        "nullCount": _nested(null_counts),
    }
    if nan_free:
        document["nanCount"] = _nested(dict.fromkeys(nan_free, 0))
    if tight_bounds is not None:
        document["tightBounds"] = tight_bounds
    return orjson.dumps(document).decode()


def _bound(value: object, leaf: StatsLeaf, *, maximum: bool) -> object | None:
    return bound_to_json(value, leaf.data_type, maximum=maximum, prefix_length=leaf.prefix_length)


def _put(target: dict[tuple[str, ...], object], path: tuple[str, ...], value: object | None) -> None:
    if value is not None:
        target[path] = value


def _has_costly_bounds(leaf: StatsLeaf) -> bool:
    return leaf.data_type == STRING or isinstance(leaf.data_type, DecimalType)


def _has_dot(field: pa.Field) -> bool:
    if "." in field.name:
        return True
    return any(_has_dot(field.type.field(index)) for index in range(field.type.num_fields))


def _timestamp_string(value: dt.datetime, *, zoned: bool, up: bool) -> str | None:
    naive = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
    micros = (naive - _EPOCH) // dt.timedelta(microseconds=1)
    millis = -(-micros // 1000) if up else micros // 1000
    try:
        rounded = _EPOCH + dt.timedelta(milliseconds=millis)
    except OverflowError:
        return None
    return rounded.isoformat(timespec="milliseconds") + ("Z" if zoned else "")


def _nested(values: Mapping[tuple[str, ...], Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for path, value in values.items():
        node = tree
        for part in path[:-1]:
            node = node.setdefault(part, {})
        node[path[-1]] = value
    return tree
