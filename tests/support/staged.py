"""Files as a load stages them, made without Spark."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path

import pyarrow as pa

from delta_core.data.row_files import write_data_files
from delta_core.data.write_plan import WritePlan
from delta_core.jobs.params.engine_io import EngineIO
from delta_core.schema.arrow import from_arrow, to_arrow
from delta_core.storage.open import open_store
from spark_jobs.engine_io import TableReach
from spark_jobs.writer.staged_files import StagedFiles

UTC = datetime.UTC

VALUES = pa.table(
    {
        "n": pa.array([1, None, 3, 2**60 + 1], pa.int64()),
        "m": pa.array([0, 1, 5, None], pa.int32()),
        "flag": pa.array([True, None, False, True]),
        "price": pa.array(
            [decimal.Decimal("1.10"), None, decimal.Decimal("0.01"), None], pa.decimal128(10, 2)
        ),
        "key": pa.array([decimal.Decimal(10**30 + i) for i in range(4)], pa.decimal128(38, 0)),
        "day": pa.array([datetime.date(2024, 1, d) for d in (1, 2, 3, 4)]),
        "at": pa.array(
            [datetime.datetime(2024, 1, d, tzinfo=UTC) for d in (1, 2, 3, 4)], pa.timestamp("us", "UTC")
        ),
        "old": pa.array([datetime.datetime(1, 1, 1, tzinfo=UTC)] * 4, pa.timestamp("us", "UTC")),
        "x": pa.array([0.5, None, float("nan"), 2.0]),
        "name": pa.array(["a", None, "b", "b"]),
        "raw": pa.array([b"1", None, b"2", b"3"]),
        "tags": pa.array([["a"], None, [], ["b", None]]),
    }
)


def stage(
    folder: Path, table: pa.Table, *, partition_by: tuple[str, ...] = (), per_file: int = 100
) -> StagedFiles:
    """A table as the files of a load that has not committed."""
    store, schema = open_store(str(folder)), from_arrow(table.schema)
    adds = write_data_files(
        store,
        table.cast(to_arrow(schema)),
        schema=schema,
        partition_columns=partition_by,
        directory="prefix",
        max_rows_per_file=per_file,
    )
    return StagedFiles(
        reach=TableReach(engine_io=EngineIO.NATIVE, store=store, spark_roots={store.uri: f"file://{folder}"}),
        prefix="prefix",
        adds=adds,
        rows=table.num_rows,
        plan=WritePlan.plain(schema, partition_columns=partition_by),
    )
