"""The streaming data source `deltaward-files`: the files of each batch as rows, not their contents."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from spark_jobs.engine_io import ExecutorReach
from spark_jobs.streaming.offsets import TableOffsets
from spark_jobs.streaming.options import batch_limits, follow_options, pin_options
from spark_jobs.worker_tasks import plain_errors

FILES_FORMAT: Final = "deltaward-files"
FILE_COLUMN: Final = "file"

_REQUEST: Final = "request"


class FilesSource(DataSource):
    """The files of a table's new commits. `spark_jobs.stream` uses it, and reads the rows natively."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return FILES_FORMAT

    def schema(self) -> str:
        """One column, with each file as JSON."""
        return f"{FILE_COLUMN} string"

    def streamReader(self, schema: StructType) -> FilesReader:  # noqa: N802
        """The reader of a query."""
        return FilesReader(json.loads(self.options[_REQUEST]))


def request_option(table: ExecutorReach, options: Mapping[str, str], *, version: int) -> tuple[str, str]:
    """The option that describes a query to the source: a name and a value, without secrets."""
    document = {
        "uri": table.table_uri,
        "roots": list(table.allowed_roots),
        "storage": dict(table.options),
        "options": dict(options),
        "version": version,
    }
    return _REQUEST, json.dumps(document)


class FilesReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batches in the driver's Python process, and passes their files on as rows."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        """Create it from the document of `request_option`. The table is opened on first use."""
        self._request = request
        self._opened: TableOffsets | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """The offset at which a new query starts."""
        with plain_errors():
            return self._offsets.initial()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """The end of the next batch."""
        with plain_errors():
            return self._offsets.latest(start, limit)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """The limit of the options."""
        return self._offsets.default_limit()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Stop at what is available now."""
        self._offsets.stop_at_now()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The files of a batch, in one partition."""
        with plain_errors():
            batch = self._offsets.batch(start, end)
            files = [] if batch is None else [json.dumps(file.to_document()) for file in batch.files]
        return [InputPartition(files)] if files else []

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The files as rows."""
        yield pa.RecordBatch.from_pydict({FILE_COLUMN: partition.value})

    def commit(self, end: dict[str, Any]) -> None:
        """Let the pin of the query follow. The position itself is in the checkpoint."""
        with plain_errors():
            self._offsets.finish(end)

    def stop(self) -> None:
        """End the pin of the query, unless it has a name."""
        if self._opened is not None:
            self._opened.close()

    @property
    def _offsets(self) -> TableOffsets:
        if self._opened is None:
            request = self._request
            table = ExecutorReach(
                table_uri=request["uri"],
                allowed_roots=tuple(request["roots"]),
                options=request["storage"],
            )
            self._opened = TableOffsets(
                table,
                follow_options(request["options"]),
                batch_limits(request["options"]),
                pin=pin_options(request["options"]),
                version=request["version"],
            )
        return self._opened
