"""What stops a clone and leaves nothing: copies that are not what the source has, vectors without a place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import clone_table, write_deltalake
from delta_core.actions import DeletionVectorDescriptor
from delta_core.errors import CloneError, CorruptLogError
from delta_core.execution.inline_executor import InlineExecutor
from delta_core.maintenance.clone.translation import deletion_vector_place
from delta_core.storage.data_access import TABLE_ONLY, DataAccess
from delta_core.storage.local import LocalLogStore
from delta_core.storage.log_store import ObjectInfo


@pytest.fixture
def source(tmp_path: Path) -> Path:
    root = tmp_path / "source"
    write_deltalake(root, pa.table({"id": [1, 2, 3]}))
    return root


def left(target: Path) -> list[Path]:
    return [path for path in target.rglob("*") if path.is_file()]


def test_a_file_that_ends_early_is_no_copy(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = DataAccess.open

    class Short:
        """Says how long it is, and gives less."""

        def __init__(self, reader: Any) -> None:
            self._parts = [reader.read(10), b""]
            self.size = reader.size

        def read(self, size: int) -> bytes:
            return self._parts.pop(0)

    @contextmanager
    def short(self: DataAccess, *args: Any, **options: Any) -> Iterator[Short]:
        with original(self, *args, **options) as reader:
            yield Short(reader)

    monkeypatch.setattr(DataAccess, "open", short)
    target = source.with_name("target")
    with pytest.raises(CloneError, match="ended after 10 of"):
        clone_table(source, target, executor=InlineExecutor(1))
    assert left(target) == []


def test_a_copy_of_another_size_is_none(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = LocalLogStore.head

    def head(self: LocalLogStore, path: str) -> ObjectInfo:
        found = original(self, path)
        grown = path.endswith(".parquet") and "target" in self.uri
        return ObjectInfo(path=found.path, size_bytes=found.size_bytes + grown, modified_ms=found.modified_ms)

    monkeypatch.setattr(LocalLogStore, "head", head)
    target = source.with_name("target")
    with pytest.raises(CloneError, match="The copy has"):
        clone_table(source, target, executor=InlineExecutor(1))
    assert left(target) == []


def test_a_vector_without_a_place_is_a_damaged_log(source: Path) -> None:
    dv = DeletionVectorDescriptor(
        storage_type="u", path_or_inline_dv="too short", size_in_bytes=4, cardinality=1
    )
    with pytest.raises(CorruptLogError, match="cannot be found"):
        deletion_vector_place(dv, source=LocalLogStore(source), access=TABLE_ONLY)
