"""Bounds of strings and decimals, taken from Parquet's encoder.

The encoder compares all values to fill the footer. A second comparison of strings and decimals for the log
would take a twelfth of the time of writing a file. Bounds of other types cost next to nothing.
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

# Arrow omits longer bounds from the footer.
_MOST_FOOTER_BYTES = 4096


class EncoderBounds:
    """The bounds of one file that come from its footer, row group by row group."""

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


def _has_costly_bounds(leaf: StatsLeaf) -> bool:
    return leaf.data_type == STRING or isinstance(leaf.data_type, DecimalType)


def _has_dot(field: pa.Field) -> bool:
    if "." in field.name:
        return True
    return any(_has_dot(field.type.field(index)) for index in range(field.type.num_fields))
