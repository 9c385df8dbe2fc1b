"""The clauses of a MERGE on Spark. `delta_core.merge` has their meaning; conditions may be Columns here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.jobs.params.merge import MergeParams
from delta_core.merge.clauses import MergeClause as MergeClause
from delta_core.merge.clauses import MergeClauses as MergeClauses
from delta_core.merge.clauses import conditions as conditions
from delta_core.merge.clauses import merge_parameters as merge_parameters
from delta_core.merge.clauses import qualifiers as qualifiers
from delta_core.merge.clauses import sql_text as sql_text
from delta_core.merge.clauses import words as words

if TYPE_CHECKING:
    from pyspark.sql import Column

    Sql = str | Column
    """Spark SQL text, or a Column that refers to columns by name (`col("s.id")`, not `frame["id"]`)."""


def clauses_of(params: MergeParams) -> MergeClauses:
    """The clauses in the parameters of a merge job."""
    return MergeClauses(
        **{
            name: tuple(
                MergeClause(action=item.action, condition=item.condition, values=item.values)
                for item in clauses
            )
            for name, clauses in params.clauses.items()
        }
    )
