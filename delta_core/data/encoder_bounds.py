"""Bounds of strings and decimals as Parquet's encoder has found them.

The encoder compares all values for the footer. Comparing strings and decimals once more for the log takes a
twelfth of the time that writing a file does; other types cost next to nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from delta_core.data.statistics_collector import StatisticsAccumulator, leaf_column
from delta_core.data.stats_columns import StatsLeaf
from delta_core.scan.footer_statistics import footer_leaf, footer_positions
from delta_core.schema.types import STRING, DecimalType

# Arrow leaves a bound out of the footer that is longer.
_MOST_FOOTER_BYTES = 4096


class EncoderBounds:
    """Which bounds of one file come from its footer, row group by row group."""

    def __init__(self, leaves: Iterable[StatsLeaf], schema: pa.Schema) -> None:
        """Of the leaves of a file with this schema, those that the footer can be asked about."""
        # A footer names columns by dotted paths, which mean one column each where no name has a dot.
        plain = not any(_has_dot(field) for field in schema)
        self._leaves = [leaf for leaf in leaves if plain and leaf.has_bounds and _compared(leaf)]
        self._groups = 0
        self._seen: set[tuple[int, tuple[str, ...]]] = set()

    @property
    def paths(self) -> frozenset[tuple[str, ...]]:
        """The leaves whose bounds `add_group` and `add_footer` give, and nobody else need look for."""
        return frozenset(leaf.path for leaf in self._leaves)

    def add_group(self, group: pa.Table, statistics: StatisticsAccumulator) -> None:
        """Take the bounds that the footer will not have of a row group that is about to be written."""
        for leaf in self._leaves:
            if leaf.data_type == STRING and leaf.path[0] in group.schema.names:
                column = leaf_column(group, leaf)
                longest = pc.max(pc.binary_length(column)).as_py()
                if longest is not None and longest > _MOST_FOOTER_BYTES:
                    statistics.update_bounds(leaf, column)
                    self._seen.add((self._groups, leaf.path))
        self._groups += 1

    def add_footer(self, footer: pq.FileMetaData, statistics: StatisticsAccumulator) -> None:
        """Take the other row groups' bounds. A leaf of which the footer lacks one has none in the log."""
        positions = footer_positions(footer)
        for leaf in self._leaves:
            position = positions.get(".".join(leaf.path).casefold(), -1)
            if position < 0:
                statistics.withhold_bounds(leaf)
                continue
            for group in range(footer.num_row_groups):
                if (group, leaf.path) in self._seen:
                    continue
                found = footer_leaf(footer, group, position, leaf.data_type)
                if found.all_null:
                    continue
                if found.minimum is None or found.maximum is None:
                    statistics.withhold_bounds(leaf)
                else:
                    statistics.merge_bounds(leaf, found.minimum, found.maximum)


def _compared(leaf: StatsLeaf) -> bool:
    return leaf.data_type == STRING or isinstance(leaf.data_type, DecimalType)


def _has_dot(field: pa.Field) -> bool:
    if "." in field.name:
        return True
    return any(_has_dot(field.type.field(index)) for index in range(field.type.num_fields))
