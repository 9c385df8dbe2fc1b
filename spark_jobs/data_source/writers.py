"""Writing a table through the data source `deltaward`: tasks write files, the driver commits them once."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType as SparkStructType

from delta_core.actions import AddFile, SetTransaction
from delta_core.actions.json_codec import add_from_json, add_to_json
from delta_core.clock import SYSTEM_CLOCK
from delta_core.data.file_writer import choose_compression
from delta_core.data.row_files import FileOptions
from delta_core.data.row_pipeline import write_rows
from delta_core.data.write_plan import WritePlan
from delta_core.dml.commit_files import CommitMode, commit_new_files
from delta_core.dml.metadata_update import MetadataUpdate, TableDefinition, plan_metadata_update
from delta_core.dml.partition_overwrite import require_partitioned
from delta_core.errors import (
    ConfigurationError,
    MetadataChangedError,
    TableNotFoundError,
    UnsupportedTableFeatureError,
)
from delta_core.expressions.ast import Expression
from delta_core.expressions.parse import parse_predicate
from delta_core.expressions.typing import resolve
from delta_core.log.outer_tables import require_separate_directory
from delta_core.run import Run
from delta_core.schema.types import StructType
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.log_store import LogStore
from delta_core.table_features.feature import WriterKind
from delta_core.transaction import CommitProperties
from spark_jobs.data_source.options import WriteOptions, executor_reach
from spark_jobs.engine_io import ExecutorReach
from spark_jobs.schema import from_spark
from spark_jobs.streaming.sink import query_id
from spark_jobs.worker_tasks import plain_errors
from spark_jobs.writer.data_writer import discard_prefix


@dataclass(frozen=True, slots=True)
class WrittenFiles(WriterCommitMessage):
    """The `add` actions of one task's files, and the plan by which the task wrote them."""

    adds: tuple[dict[str, Any], ...]
    plan: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteJob:
    """One write, or all batches of a query: values that can be pickled.

    Attributes:
        table: how to open the table.
        options: the options.
        mode: what happens with the rows that the table has.
        data_schema: the columns of the new rows.
        version: the version that the write is based on; None if there was no table.
        change: the definition of the table after the write.
        prefix: the directory of the files.
        now_us: the time of the statement, for defaults.
    """

    table: ExecutorReach
    options: WriteOptions
    mode: CommitMode
    data_schema: StructType
    version: int | None
    change: MetadataUpdate
    prefix: str
    now_us: int

    @classmethod
    def of(cls, options: Mapping[str, str], schema: SparkStructType, *, overwrite: bool) -> WriteJob:
        """Plan a write, in the driver.

        Raises:
            DeltaError: the table cannot be written, or the rows do not fit it.
        """
        table, parsed = executor_reach(options), WriteOptions.of(options)
        store, _ = table.open()
        snapshot = _newest(store)
        if snapshot is None:
            require_separate_directory(store)
        else:
            snapshot.require_writable(writer_kind=WriterKind.ARROW_ROWS)
        data_schema, now_ms = from_spark(schema), SYSTEM_CLOCK.now_ms()
        mode = _mode(parsed, overwrite=overwrite)
        change = plan_metadata_update(
            snapshot, data_schema=data_schema, definition=_definition(parsed), now_ms=now_ms
        )
        if mode is CommitMode.REPLACE_PARTITIONS:
            require_partitioned(change.partition_columns)
        if change.plan.identity:
            raise UnsupportedTableFeatureError(
                f"The data source 'deltaward' cannot write to {store.uri!r}.",
                cause="The table has an identity column, and its tasks cannot number rows together.",
                fix="Use spark_jobs.write, or spark_jobs.stream_to for a stream.",
            )
        return cls(
            table=table,
            options=parsed,
            mode=mode,
            data_schema=data_schema,
            version=None if snapshot is None else snapshot.version,
            change=change,
            prefix=str(uuid.uuid4()),
            now_us=now_ms * 1000,
        )

    def write(self, batches: Iterator[pa.RecordBatch]) -> WrittenFiles:
        """Write the rows of one task to files, in a worker."""
        with plain_errors():
            first = next(batches, None)
            if first is None:
                return WrittenFiles(())
            store, _ = self.table.open()
            plan = WritePlan.from_json(json.loads(json.dumps(self.change.plan.to_json())))

            def all_batches() -> Iterator[pa.RecordBatch]:
                yield first
                yield from batches

            written = write_rows(
                store,
                plan,
                pa.RecordBatchReader.from_batches(first.schema, all_batches()),
                predicate=self._predicate(),
                options=FileOptions(
                    directory=self.prefix,
                    compression=choose_compression(self.options.compression, plan.properties),
                    max_rows_per_file=self.options.max_records_per_file,
                ),
            )
            return WrittenFiles(tuple(add_to_json(add) for add in written.adds), _as_string(self.change.plan))

    def commit(
        self, messages: Sequence[WriterCommitMessage | None], txn: SetTransaction | None, *, rebase: bool
    ) -> None:
        """Commit the files of all tasks, in the driver.

        Args:
            messages: the files.
            txn: the key of the commit. Nothing is committed when the table has it.
            rebase: commit to the newest version, for a later batch of a query.

        Raises:
            MetadataChangedError: the table was changed since the write was planned.
            DeltaError: see `commit_new_files`. Written files are deleted when no commit can refer to them.
        """
        with plain_errors():
            store, _ = self.table.open()
            written = [message for message in messages if isinstance(message, WrittenFiles)]
            adds = [add_from_json(add) for message in written for add in message.adds]
            snapshot = self._base(store, rebase=rebase)
            run = Run(commit=CommitProperties(user_metadata=self.options.user_metadata, txn=txn))
            if snapshot is not None and run.already_applied(snapshot) is not None:
                self._discard(store, adds)
                return
            change = self._change(snapshot)
            if {message.plan for message in written if message.adds} - {_as_string(change.plan)}:
                self._discard(store, adds)
                raise MetadataChangedError(
                    f"The table {store.uri!r} was changed while rows were written to it.",
                    cause="The rows were written for other columns or properties than the table has.",
                    fix="Restart the query: it writes the batch again.",
                )
            commit_new_files(
                snapshot,
                store,
                mode=self.mode,
                adds=adds,
                schema=self.data_schema,
                predicate=self._predicate(),
                definition=_definition(self.options),
                writer_kind=WriterKind.ARROW_ROWS,
                change=change,
                run=run,
            )

    def abort(self) -> None:
        """Delete the files, in the driver."""
        with plain_errors():
            store, _ = self.table.open()
            discard_prefix(store, self.prefix, tasks_may_run=True)

    def _predicate(self) -> Expression | None:
        condition, schema = self.options.replace_where, self.change.schema
        return None if condition is None else resolve(parse_predicate(condition, schema), schema)

    def _base(self, store: LogStore, *, rebase: bool) -> Snapshot | None:
        if rebase:
            return _newest(store)
        return None if self.version is None else Snapshot.load(store, version=self.version)

    def _change(self, snapshot: Snapshot | None) -> MetadataUpdate:
        """The definition for the commit: as planned, unless an earlier batch has committed it."""
        if snapshot is None or snapshot.version == self.version:
            return self.change
        return plan_metadata_update(
            snapshot,
            data_schema=self.data_schema,
            definition=_definition(self.options),
            now_ms=SYSTEM_CLOCK.now_ms(),
        )

    @staticmethod
    def _discard(store: LogStore, adds: Sequence[AddFile]) -> None:
        for add in adds:
            store.delete(add.path)


class TableWriter(DataSourceArrowWriter):
    """Writes a DataFrame as one commit."""

    def __init__(self, job: WriteJob) -> None:
        """Create the writer of a job."""
        self._job = job

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of one task."""
        return self._job.write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit the files of all tasks."""
        options = self._job.options
        txn = None
        if options.app_id is not None:
            txn = SetTransaction(
                app_id=options.app_id,
                version=options.app_version or 0,
                last_updated_ms=SYSTEM_CLOCK.now_ms(),
            )
        self._job.commit(messages, txn, rebase=False)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Delete the files of all tasks."""
        self._job.abort()


class TableStreamWriter(DataSourceStreamArrowWriter):
    """Writes each batch of a query as one commit, exactly once."""

    def __init__(self, job: WriteJob, app_id: str | None, checkpoint: str | None) -> None:
        """Create the writer of a query.

        Args:
            job: the write.
            app_id: the id of the transactions; None takes the id of the query.
            checkpoint: the query's checkpoint, which has its id.

        Raises:
            ConfigurationError: there is neither an id nor a checkpoint.
        """
        if app_id is None and checkpoint is None:
            raise ConfigurationError(
                "A stream into a table needs an id, so that no batch is written twice.",
                cause="The checkpoint's location is not an option of the query.",
                fix="Set the option checkpointLocation, or txnAppId to an id of your own.",
            )
        self._job = job
        self._app_id = app_id
        self._checkpoint = checkpoint

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of one task."""
        return self._job.write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Commit the files of all tasks of a batch."""
        with plain_errors():
            app_id = self._app_id or query_id(self._checkpoint or "")
            now_ms = SYSTEM_CLOCK.now_ms()
            txn = SetTransaction(app_id=app_id, version=batchId, last_updated_ms=now_ms)
            self._job.commit(messages, txn, rebase=True)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Delete the files of a batch that tasks have reported."""
        with plain_errors():
            store, _ = self._job.table.open()
            for message in messages:
                for add in message.adds if isinstance(message, WrittenFiles) else ():
                    store.delete(add["path"])


def _as_string(plan: WritePlan) -> str:
    return json.dumps(plan.to_json(), sort_keys=True)


def _definition(options: WriteOptions) -> TableDefinition:
    return TableDefinition(
        partition_by=options.partition_by,
        merge_schema=options.merge_schema,
        overwrite_schema=options.overwrite_schema,
    )


def _mode(options: WriteOptions, *, overwrite: bool) -> CommitMode:
    if not overwrite:
        if options.replace_where is not None or options.dynamic_partitions:
            raise ConfigurationError(
                "The options replaceWhere and partitionOverwriteMode need the mode overwrite.",
                fix="Call mode('overwrite').",
            )
        return CommitMode.APPEND
    if options.dynamic_partitions:
        return CommitMode.REPLACE_PARTITIONS
    return CommitMode.OVERWRITE if options.replace_where is None else CommitMode.REPLACE_WHERE


def _newest(store: LogStore) -> Snapshot | None:
    try:
        return Snapshot.load(store)
    except TableNotFoundError:
        return None
