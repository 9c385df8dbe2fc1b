"""`spark_jobs.stream_error`: why a streaming query ended, as an error of this library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.boundary import public
from delta_core.errors import DeltaError
from spark_jobs.failures import as_delta_error

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


@public
def stream_error(query: StreamingQuery) -> DeltaError | None:
    """The error that ended a streaming query; None if it runs, or ended without one.

    Spark reports each failure as its own exception. Where this library raised the error, in any process, the
    result is that error, such as `StreamRestartRequiredError` or `StreamDataLossError`, with its `code` and
    `retryable`. Otherwise it is a `JobFailedError`.

    Args:
        query: a query of `stream`, `stream_to` or `format("deltaward")`.
    """
    found = query.exception()
    return None if found is None else as_delta_error(found, doing="running a stream")
