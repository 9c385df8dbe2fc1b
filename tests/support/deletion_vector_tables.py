"""A table, committed by hand, whose rows leave by deletion vectors of ours, and the rows it must have."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from delta_core.actions import Action, AddFile, DeletionVectorDescriptor
from delta_core.clock import SYSTEM_CLOCK
from delta_core.deletion_vectors.file_update import FileUpdate, removed, update_deletion_vector
from delta_core.deletion_vectors.writer import write_deletion_vectors
from delta_core.schema.json import schema_to_json
from delta_core.schema.types import LONG, StructField, StructType
from delta_core.storage.local import LocalLogStore
from delta_core.table_features.table_properties import TableProperties
from tests.support.log_builder import NOW_MS, LogBuilder, metadata, protocol
from tests.support.stored_deletion_vectors import read_union

_SCHEMA = StructType((StructField(name="id", data_type=LONG), StructField(name="file", data_type=LONG)))


class DeletionVectorTable:
    """Files of some rows each, whose `id` is the position and whose `file` is the file's number.

    Attributes:
        expected: for each version from 1 on the rows, as (file, id).
    """

    def __init__(self, root: Path, sizes: Sequence[int], *, random_prefixes: bool = False) -> None:
        self.root = root
        self.expected: list[set[tuple[int, int]]] = []
        configuration = {"delta.enableDeletionVectors": "true"}
        if random_prefixes:
            configuration["delta.randomizeFilePrefixes"] = "true"
        self._properties = TableProperties(configuration)
        self._sizes = sizes
        root.mkdir(parents=True, exist_ok=True)
        self._log = LogBuilder(root)
        self._store = LocalLogStore(root)
        features = frozenset({"deletionVectors"})
        self._commit(
            protocol(
                min_reader_version=3,
                min_writer_version=7,
                reader_features=features,
                writer_features=features,
            ),
            metadata(
                schema_string=schema_to_json(_SCHEMA), partition_columns=(), configuration=configuration
            ),
        )
        self._live = {number: self._file(number, size) for number, size in enumerate(sizes)}
        self._rows = {number: set(range(size)) for number, size in enumerate(sizes)}
        self._commit(*self._live.values())
        self._note()

    @property
    def live_deletion_vectors(self) -> list[DeletionVectorDescriptor]:
        """The vectors of the live files."""
        return [file.deletion_vector for file in self._live.values() if file.deletion_vector is not None]

    def delete(self, rows: dict[int, Sequence[int]], *, inline_max_bytes: int) -> None:
        """One commit: positions of each file, some of which may be deleted already."""
        unions = {
            number: read_union(
                self._store,
                self._live[number].deletion_vector,
                np.array(positions, np.int64),
                num_records=self._sizes[number],
            )
            for number, positions in rows.items()
            if number in self._live
        }
        changed = {number: union for number, union in unions.items() if not union.is_unchanged}
        kept = [number for number, union in changed.items() if not union.deletes_all]
        written = write_deletion_vectors(
            self._store,
            [changed[number].positions for number in kept],
            properties=self._properties,
            inline_max_bytes=inline_max_bytes,
        )
        updates: list[FileUpdate] = []
        for number, union in changed.items():
            assert set(union.newly_deleted.tolist()) <= self._rows[number]
            self._rows[number] -= set(union.newly_deleted.tolist())
            file = self._live.pop(number)
            if union.deletes_all:
                updates.append(FileUpdate(remove=removed(file, deletion_timestamp_ms=NOW_MS), add=None))
                continue
            dv = written.descriptors[kept.index(number)]
            update = update_deletion_vector(file, dv, deletion_timestamp_ms=NOW_MS)
            assert update.add is not None
            self._live[number] = update.add
            updates.append(update)
        actions = [action for one in updates for action in (one.remove, one.add) if action is not None]
        self._commit(*actions)
        self._note()

    def _commit(self, *actions: Action) -> None:
        # Delta-spark goes back no further than the table's retention.
        self._log.commit(*actions, time_ms=SYSTEM_CLOCK.now_ms() - 100_000 + self._log.next_version * 1000)

    def _file(self, number: int, size: int) -> AddFile:
        name = f"part-{number}.parquet"
        rows = pa.table({"id": pa.array(range(size), pa.int64()), "file": pa.array([number] * size)})
        pq.write_table(rows, self.root / name)
        return AddFile(
            path=name,
            size_bytes=(self.root / name).stat().st_size,
            modification_time_ms=NOW_MS,
            stats=f'{{"numRecords":{size},"minValues":{{"id":0}},"maxValues":{{"id":{size - 1}}}}}',
        )

    def _note(self) -> None:
        self.expected.append(
            {(number, row) for number in self._live for row in self._rows[number]},
        )


def every_kind_of_deletion_vector(root: Path) -> DeletionVectorTable:
    """Arrays, bitsets and runs, over several containers; inline, in files, united, with a file's last row."""
    table = DeletionVectorTable(root, [10, 200_000, 150_000, 70_000, 5], random_prefixes=True)
    table.delete({0: [3, 4, 7], 1: range(1, 200_000, 3), 2: range(1000, 140_000)}, inline_max_bytes=128)
    table.delete({0: [0], 1: [65_535, 65_536, 199_999], 3: [69_999], 4: [0, 1]}, inline_max_bytes=-1)
    table.delete({4: [2, 3, 4], 2: range(140_000), 3: range(0, 70_000, 2)}, inline_max_bytes=128)
    return table


def random_table(root: Path, rng: random.Random) -> DeletionVectorTable:
    """Some deletions of random rows."""
    sizes = [rng.choice([1, 7, 100, 66_000]) for _ in range(rng.randint(1, 3))]
    table = DeletionVectorTable(root, sizes, random_prefixes=rng.random() < 0.5)
    for _ in range(rng.randint(1, 3)):
        chosen = rng.sample(range(len(sizes)), rng.randint(1, len(sizes)))
        rows = {
            number: rng.sample(range(sizes[number]), rng.randint(0, min(sizes[number], 3000)))
            for number in chosen
        }
        table.delete(rows, inline_max_bytes=rng.choice([-1, 128, 1 << 20]))
    return table
