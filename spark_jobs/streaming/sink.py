"""`spark_jobs.stream_to`: write a streaming DataFrame to a table, each batch exactly once."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from delta_core.arguments import name_list
from delta_core.boundary import public
from delta_core.errors import ConfigurationError, DeltaError, ObjectNotFoundError
from delta_core.jobs.params.engine_io import EngineIO
from delta_core.storage import open_store
from spark_jobs.engine_io import engine_io_of
from spark_jobs.packaging import ensure_importable
from spark_jobs.writer.write import write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_MODES: Final = {"append": "append", "complete": "overwrite"}


@public
def stream_to(
    df: DataFrame,
    uri: str,
    *,
    checkpoint: str | os.PathLike[str],
    mode: str = "append",
    app_id: str | None = None,
    trigger: Mapping[str, Any] | None = None,
    query_name: str | None = None,
    partition_by: Sequence[str] | None = None,
    merge_schema: bool = False,
    configuration: Mapping[str, str] | None = None,
    user_metadata: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    engine_io: str = EngineIO.AUTO,
) -> StreamingQuery:
    """Write a streaming DataFrame to a table: each batch is one commit, and is committed exactly once.

    The commit contains the number of the batch as a transaction. When Spark repeats a batch after a failure,
    nothing is written if the table has that number already. Rows are written as `write` writes them.

    Args:
        df: a streaming DataFrame.
        uri: the table's URI or path. The first batch creates the table if it does not exist.
        checkpoint: the directory of the query's checkpoint, as a path or URI for Spark.
        mode: `append` adds the new rows. `complete` replaces the table by the whole result of an aggregation.
        app_id: the id of the transactions. None takes the id of the query, from its checkpoint. Two queries
            must not have the same id, and an id must not be used with another checkpoint.
        trigger: arguments of Spark's own `trigger`, such as {"availableNow": True}.
        query_name: the name of the query.
        partition_by, merge_schema, configuration, user_metadata, storage_options, engine_io: see `write`.

    Returns:
        Spark's own query.

    Raises:
        ConfigurationError: the mode does not exist, or `df` is not a streaming DataFrame.
    """
    if mode not in _MODES:
        raise ConfigurationError(
            f"The mode of a stream cannot be {mode!r}.", fix=f"Choose one of {', '.join(_MODES)}."
        )
    if not df.isStreaming:
        raise ConfigurationError(
            "The DataFrame is not a streaming one.", fix="Write it with spark_jobs.write, or use readStream."
        )
    engine_io_of(engine_io)
    spark, folder = df.sparkSession, os.fspath(checkpoint)
    ensure_importable(spark)
    writer = (
        df.writeStream.outputMode(mode)
        .option("checkpointLocation", folder)
        .foreachBatch(
            _BatchWriter(
                uri=uri,
                checkpoint=folder,
                app_id=app_id,
                mode=_MODES[mode],
                arguments={
                    "partition_by": name_list(partition_by, what="partition_by"),
                    "merge_schema": merge_schema,
                    "configuration": None if configuration is None else dict(configuration),
                    "user_metadata": user_metadata,
                    "storage_options": None if storage_options is None else dict(storage_options),
                    "engine_io": str(engine_io),
                },
            )
        )
    )
    if trigger:
        writer = writer.trigger(**trigger)
    if query_name is not None:
        writer = writer.queryName(query_name)
    return writer.start()


@dataclass(slots=True, kw_only=True)
class _BatchWriter:
    """Writes the batches of one query; pickled where Spark runs it in another process.

    Attributes:
        uri, mode, arguments: those of `write`.
        checkpoint: the query's checkpoint.
        app_id: the id of the transactions; None until it is read from the checkpoint.
    """

    uri: str
    checkpoint: str
    app_id: str | None
    mode: str
    arguments: Mapping[str, Any] = field(repr=False)

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        if self.app_id is None:
            self.app_id = query_id(self.checkpoint, self.arguments["storage_options"])
        write(rows, self.uri, mode=self.mode, txn=(self.app_id, batch_id), **self.arguments)


def query_id(checkpoint: str, storage_options: Mapping[str, str] | None = None) -> str:
    """The id of the query to which a checkpoint belongs. One request.

    Raises:
        ConfigurationError: the checkpoint cannot be read from here.
    """
    try:
        document = json.loads(open_store(checkpoint, storage_options=storage_options).read("metadata"))
        found = document["id"]
    except (DeltaError, ObjectNotFoundError, ValueError, TypeError, KeyError) as error:
        raise ConfigurationError(
            f"The id of the query with the checkpoint {checkpoint!r} is not known.",
            cause=str(error),
            fix="Pass app_id (txnAppId), an id of your own for this query.",
        ) from error
    return str(found)
