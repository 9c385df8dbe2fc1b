"""Vector files that fail, or end too soon, while they are read: no row comes back by that."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pytest

from delta_core.deletion_vectors.reader import read_deletion_vector
from delta_core.deletion_vectors.writer import write_deletion_vectors
from delta_core.errors import InvalidTableError
from delta_core.storage.local import LocalLogStore

ROWS = list(range(0, 500, 7))


class FailingStore(LocalLogStore):
    """Its files open well; then the disk gives half an answer, or none."""

    gives_half = False

    def open_input(self, path: str) -> pa.NativeFile:
        with super().open_input(path) as source:
            return pa.PythonFile(_Failing(source.read(), gives_half=self.gives_half), mode="r")


class _Failing(io.BytesIO):
    """The first byte, which is the file's version, is read well."""

    def __init__(self, data: bytes, *, gives_half: bool) -> None:
        super().__init__(data)
        self._gives_half = gives_half

    def read(self, size: int | None = -1) -> bytes:
        if size == 1:
            return super().read(size)
        if self._gives_half:
            return super().read((size or 0) // 2)
        raise OSError(5, "Input/output error")


@pytest.mark.parametrize(
    ("gives_half", "said"), [(False, "Input/output error"), (True, "Its file ends early")]
)
def test_a_disk_that_fails_gives_no_vector(tmp_path: Path, gives_half: bool, said: str) -> None:
    (descriptor,) = write_deletion_vectors(LocalLogStore(tmp_path), [ROWS], inline_max_bytes=0).descriptors
    store = FailingStore(tmp_path)
    store.gives_half = gives_half
    with pytest.raises(InvalidTableError, match="deletion vector") as caught:
        read_deletion_vector(store, descriptor, num_rows=500)
    assert said in f"{caught.value.problem} {caught.value.cause}"
    assert read_deletion_vector(LocalLogStore(tmp_path), descriptor, num_rows=500).tolist() == ROWS
