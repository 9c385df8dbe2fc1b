"""May a concurrently added file hold rows that a predicate reads?

Conservative: a file is ruled out only when its partition values or its statistics prove that no row
matches.
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
    """A matcher for files of a table with this schema, partitioning and names of columns in files.

    Predicates must be resolved against the schema. Files whose values cannot be understood match.
    """

    def first_match(files: Sequence[AddFile], predicate: Expression) -> AddFile | None:
        if not files:
            return None
        facts = pa.table(
            {
                "partition_values": pa.array([list(f.partition_values.items()) for f in files], STRING_MAP),
                "stats": pa.array([f.stats for f in files], pa.string()),
            }
        )
        try:
            matches = files_may_match(facts, predicate, schema, partition_columns, mapping=mapping)
        except DeltaError:
            return files[0]
        return next((file for file, match in zip(files, matches, strict=True) if match), None)

    return first_match
