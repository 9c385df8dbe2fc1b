"""Finds concurrently added files that may hold rows that match a predicate.

The check is conservative: it rules a file out only when the partition values or the statistics prove that no
row matches.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from delta_core.actions import AddFile
from delta_core.actions.arrow_schema import STRING_MAP
from delta_core.errors import DeltaError
from delta_core.expressions.ast import Expression
from delta_core.scan.data_skipping import files_may_match
from delta_core.schema.column_mapping import ColumnMapping
from delta_core.schema.types import StructType
from delta_core.transaction.read_set import FileMatcher


def file_matcher(
    schema: StructType, partition_columns: Sequence[str], *, mapping: ColumnMapping
) -> FileMatcher:
    """A matcher for the files of a table with this schema, partitioning and column mapping.

    Predicates must be resolved against the schema. A file whose values cannot be parsed counts as matching.
    """

    def first_match(files: Sequence[AddFile], predicate: Expression) -> AddFile | None:
        if not files:
            return None
        values = pa.table(
            {
                "partition_values": pa.array([list(f.partition_values.items()) for f in files], STRING_MAP),
                "stats": pa.array([f.stats for f in files], pa.string()),
            }
        )
        try:
            matches = files_may_match(values, predicate, schema, partition_columns, mapping=mapping)
        except DeltaError:
            return files[0]
        return next((file for file, match in zip(files, matches, strict=True) if match), None)

    return first_match
