"""Rows of a file that deletion vectors choose."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.actions import DeletionVectorDescriptor
from delta_core.deletion_vectors.row_choice import ALL_ROWS, RowChoice
from delta_core.errors import InvalidTableError


@pytest.fixture(name="vectors")
def vectors_fixture(tmp_path: Path) -> tuple[DeletionVectorDescriptor, DeletionVectorDescriptor]:
    """Two deletion vectors of one file in `tmp_path`: rows 2 and 3, then row 7, too."""
    rows = pa.table({"id": pa.array(range(10), pa.int64())})
    write_deltalake(tmp_path, rows, configuration={"delta.enableDeletionVectors": "true"})
    found = []
    for predicate in ("id IN (2, 3)", "id = 7"):
        DeltaTable(tmp_path).delete(predicate)
        listing = DeltaTable(tmp_path).snapshot.files.to_table(["deletion_vector"])
        (document,) = listing.column("deletion_vector").to_pylist()
        found.append(DeletionVectorDescriptor(**document))
    return found[0], found[1]


def test_the_listed_rows_are_those_of_one_vector_without_the_other(
    tmp_path: Path, vectors: tuple[DeletionVectorDescriptor, DeletionVectorDescriptor]
) -> None:
    store = DeltaTable(tmp_path).store
    before, after = vectors
    choices = {
        RowChoice(): [],
        RowChoice(listed=before): [2, 3],
        RowChoice(listed=after, unlisted=before, keeps_listed=True): [7],
        RowChoice(listed=before, unlisted=after, keeps_listed=True): [],
        RowChoice(unlisted=after, keeps_listed=True): [],
    }
    for choice, expected in choices.items():
        assert choice.positions(store, num_rows=10).tolist() == expected
        assert RowChoice.from_document(json.loads(json.dumps(choice.to_document()))) == choice
    with pytest.raises(InvalidTableError):
        RowChoice.left_by(after).positions(store, num_rows=2)


def test_only_a_choice_without_a_vector_chooses_all(
    vectors: tuple[DeletionVectorDescriptor, DeletionVectorDescriptor],
) -> None:
    assert ALL_ROWS.chooses_all
    assert RowChoice.left_by(None).chooses_all
    assert not RowChoice.left_by(vectors[0]).chooses_all
    # No row is listed, and only listed rows are chosen.
    assert not RowChoice(keeps_listed=True).chooses_all
