"""Writers and maintenance at the same time on the same files: none gives up, and the rows are the model's."""

from __future__ import annotations

import random
import threading
from itertools import cycle
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable as PeerTable
from deltalake import QueryBuilder

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import DeltaError
from tests.support.soak import rounds

WRITERS = 3
ROWS = 300
STATEMENTS = rounds(usual=6, soak=400)

REWRITES = (
    lambda optimize: optimize.compact(),
    lambda optimize: optimize.purge(),
    lambda optimize: optimize.z_order(["v"], full=True),
)


def make(root: Path) -> None:
    """A table of five files, each with rows of every writer: the rows of a writer have its remainder."""
    schema = pa.schema([("id", pa.int64()), ("v", pa.int64())])
    properties = {
        "delta.enableDeletionVectors": "true",
        "delta.enableChangeDataFeed": "true",
        "delta.enableRowTracking": "true",
    }
    DeltaTable.create(root, schema=schema, configuration=properties)
    for part in range(5):
        ids = pa.array(range(part * ROWS, (part + 1) * ROWS), pa.int64())
        write_deltalake(root, pa.table({"id": ids, "v": ids}), mode="append")


class Writer(threading.Thread):
    """Changes and deletes its own rows, and keeps a model of them."""

    def __init__(self, root: Path, number: int, seed: int) -> None:
        super().__init__(name=f"writer {number}")
        self._root, self._random = root, random.Random(f"{seed} {number}")
        self.model = {key: key for key in range(5 * ROWS) if key % WRITERS == number}
        self.error: DeltaError | None = None

    def run(self) -> None:
        """Run all statements, until one fails."""
        try:
            for _ in range(STATEMENTS):
                self._statement()
        except DeltaError as error:
            self.error = error

    def _statement(self) -> None:
        chosen = self._random.sample(sorted(self.model), k=min(20, len(self.model)))
        predicate = f"id IN ({', '.join(map(str, chosen or [-1]))})"
        table = DeltaTable(self._root)
        if self._random.random() < 0.3:
            table.delete(predicate)
            self.model = {key: value for key, value in self.model.items() if key not in chosen}
        else:
            table.update({"v": "v + 1000000"}, predicate)
            self.model |= {key: self.model[key] + 1_000_000 for key in chosen}


def test_no_writer_and_no_rewrite_is_aborted(tmp_path: Path) -> None:
    make(tmp_path)
    writers = [Writer(tmp_path, number, seed=7) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    turns, rewrites, failures = cycle(REWRITES), 0, []
    while any(writer.is_alive() for writer in writers):
        try:
            metrics = next(turns)(DeltaTable(tmp_path).optimize)
            rewrites += bool(metrics["numFilesAdded"])
        except DeltaError as error:
            failures.append(error)
    for writer in writers:
        writer.join()
    assert [writer.error for writer in writers if writer.error] == []
    assert failures == []
    assert rewrites > 0
    expected = {key: value for writer in writers for key, value in writer.model.items()}
    table = DeltaTable(tmp_path).to_pyarrow_table()
    assert dict(zip(table["id"].to_pylist(), table["v"].to_pylist(), strict=True)) == expected
    assert table.num_rows == len(expected)
    peer = QueryBuilder().register("t", PeerTable(str(tmp_path))).execute("select id, v from t")
    read = pa.table(peer)
    assert dict(zip(read["id"].to_pylist(), read["v"].to_pylist(), strict=True)) == expected
    assert read.num_rows == len(expected)
