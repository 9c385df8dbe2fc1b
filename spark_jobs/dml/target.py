"""The target of a MERGE: candidate files, and their rows with file and position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from delta_core.schema.types import StructType
from delta_core.snapshot.snapshot import Snapshot
from spark_jobs.dml.source import Names
from spark_jobs.file_uris import base_name, encode_as_java, is_unreadable
from spark_jobs.reader.arrow_scan import arrow_scan
from spark_jobs.reader.data_files import DataFiles, data_files
from spark_jobs.reader.native_scan import native_scan
from spark_jobs.schema import to_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetFiles:
    """Files of the target, each with its name in Spark.

    Attributes:
        live: the files as LIVE_FILE_SCHEMA.
        files: the same files for Spark's readers.
        keys: the name of each file in `_metadata`; full paths when two files have the same name.
        by_path: whether `keys` are full paths.
    """

    snapshot: Snapshot
    live: pa.Table
    files: DataFiles
    keys: tuple[str, ...]
    by_path: bool

    @classmethod
    def of(cls, snapshot: Snapshot, live: pa.Table) -> TargetFiles:
        """The files of the snapshot that are rows of `live`, the result of a scan."""
        files = data_files(
            snapshot.store, live, schema=snapshot.schema, partition_columns=snapshot.partition_columns
        )
        names = [base_name(path) for path in files.paths]
        by_path = len(set(names)) != len(names)
        # `_metadata.file_path` always has one slash after the scheme.
        root = "file:" + files.root.removeprefix("file://")
        strings = [f"{root}/{path}" for path in files.paths] if by_path else names
        return cls(
            snapshot=snapshot,
            live=live,
            files=files,
            keys=tuple(encode_as_java(name) for name in strings),
            by_path=by_path,
        )

    def select(self, keys: set[str]) -> TargetFiles:
        """The files with these keys."""
        indexes = [index for index, key in enumerate(self.keys) if key in keys]
        return TargetFiles(
            snapshot=self.snapshot,
            live=self.live.take(pa.array(indexes, pa.int64())),
            files=self.files.select(indexes),
            keys=tuple(self.keys[index] for index in indexes),
            by_path=self.by_path,
        )

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def schema(self) -> StructType:
        """The table's schema."""
        return self.snapshot.schema

    def scan(self, spark: SparkSession, names: Names) -> DataFrame:
        """The rows with the table's columns, their file (`names.file`) and their position in the file.

        A row has the same position in every read.
        """
        from pyspark.sql import functions as fn

        partition_columns = self.snapshot.partition_columns
        readable = [index for index, path in enumerate(self.files.paths) if not is_unreadable(path)]
        frames = []
        if readable:
            key = "file_path" if self.by_path else "file_name"
            frames.append(
                native_scan(
                    spark,
                    self.files.select(readable),
                    schema=self.schema,
                    partition_columns=partition_columns,
                    metadata={names.file: key, names.position: "row_index"},
                )
            )
        for index in sorted(set(range(len(self))) - set(readable)):
            # One read per file, which is rare: its rows come in order, so the generated ids are the
            # positions.
            frame = arrow_scan(
                spark,
                self.files.select([index]),
                table_uri=self.snapshot.store.uri,
                schema=self.schema,
                partition_columns=partition_columns,
            )
            frames.append(
                frame.withColumns(
                    {names.file: fn.lit(self.keys[index]), names.position: fn.monotonically_increasing_id()}
                )
            )
        if not frames:
            empty = spark.createDataFrame([], to_spark(self.schema))
            return empty.withColumns(
                {
                    names.file: fn.lit(None).cast("string"),
                    names.position: fn.lit(None).cast("bigint"),
                }
            )
        union = frames[0]
        for frame in frames[1:]:
            union = union.unionByName(frame)
        return union
