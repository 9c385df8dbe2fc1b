from __future__ import annotations

from dataclasses import replace

import pytest

from delta_core.actions import AddFile, DeletionVectorDescriptor
from delta_core.errors import CommitError
from delta_core.transaction.final_actions import require_consistent_files

DELETION_VECTOR = DeletionVectorDescriptor(
    storage_type="u", path_or_inline_dv="ab^-aqEH.-t@S}K{vb[*k^", offset=4, size_in_bytes=40, cardinality=6
)
ADD = AddFile(path="a.parquet", partition_values={}, size_bytes=10, modification_time_ms=0, data_change=True)


@pytest.mark.parametrize("stats", [None, "{}", '{"numRecords":-1}', '{"numRecords":true}', "[]", "{"])
def test_a_file_with_a_vector_says_how_many_rows_it_has(stats: str | None) -> None:
    add = replace(ADD, deletion_vector=DELETION_VECTOR, stats=stats)
    with pytest.raises(CommitError, match="but no row count"):
        require_consistent_files([add], operation="WRITE", before=None, after=None)


def test_one_that_says_so_is_fine() -> None:
    for add in (ADD, replace(ADD, deletion_vector=DELETION_VECTOR, stats='{"numRecords":7}')):
        assert (
            require_consistent_files([add], operation="WRITE", before=None, after=None) is None  # type: ignore[func-returns-value]
        )
