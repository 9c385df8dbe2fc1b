"""Errors of stored tables: their logs, versions and protocols."""

from __future__ import annotations

from delta_core.errors.base import DeltaError
from delta_core.errors.storage import StorageError


class InvalidTableError(DeltaError):
    """The stored table cannot be read as requested."""

    code = "INVALID_TABLE"


class TableNotFoundError(InvalidTableError):
    """The URI does not contain a Delta table."""

    code = "TABLE_NOT_FOUND"


class TableExistsError(InvalidTableError):
    """A call was to create a table at a location where a table exists already."""

    code = "TABLE_EXISTS"


class NestedTableError(InvalidTableError):
    """A call was to create a table in a directory to which another table writes."""

    code = "NESTED_TABLE"


class VersionNotFoundError(InvalidTableError):
    """The log has no such version, or no version for the timestamp; log cleanup may have deleted it."""

    code = "VERSION_NOT_FOUND"


class CorruptLogError(InvalidTableError):
    """A log object is damaged or contradicts the protocol."""

    code = "CORRUPT_LOG"


class LogGapError(InvalidTableError):
    """A version is missing between two that exist."""

    code = "LOG_GAP"


class StaleListingError(StorageError):
    """The listing of an eventually consistent store contains less of a table than an earlier listing."""

    code = "STALE_LISTING"
    retryable = True


class MissingDataFileError(InvalidTableError):
    """A data file that the log lists is not in the store."""

    code = "MISSING_DATA_FILE"


class TableChangedError(InvalidTableError):
    """Rows were changed or removed, so a reader of appended rows or of changes cannot continue."""

    code = "TABLE_CHANGED"


class StreamSchemaChangedError(TableChangedError):
    """A column was renamed, dropped or has another type, so a stream cannot continue with its columns."""

    code = "STREAM_SCHEMA_CHANGED"


class StreamRestartRequiredError(TableChangedError):
    """The table has new columns. A restart of the stream at its last position reads them."""

    code = "STREAM_RESTART_REQUIRED"
    retryable = True


class StreamTableReplacedError(TableChangedError):
    """Another table is at the location, so the position of a stream has no meaning for it."""

    code = "STREAM_TABLE_REPLACED"


class StreamDataLossError(VersionNotFoundError):
    """The log no longer has a commit that a stream has not read."""

    code = "STREAM_DATA_LOSS"


class RowTrackingDisabledError(InvalidTableError):
    """Row ids or row commit versions were requested, but row tracking is not enabled on the table."""

    code = "ROW_TRACKING_DISABLED"


class PathEscapeError(InvalidTableError):
    """A path in the log refers to a location outside of the table's root and of the allowed roots."""

    code = "PATH_ESCAPE"


class ProtocolError(DeltaError):
    """The table requires something that this library does not support."""

    code = "PROTOCOL_ERROR"


class UnsupportedTableFeatureError(ProtocolError):
    """A table feature, named in the message, is not supported for this operation."""

    code = "UNSUPPORTED_TABLE_FEATURE"


class FeatureRemovalError(ProtocolError):
    """A table feature cannot be dropped now. The message states what still needs it."""

    code = "FEATURE_REMOVAL_REFUSED"


class IcebergCompatibilityError(ProtocolError):
    """A commit would violate a rule of `icebergCompatV1` or `icebergCompatV2`."""

    code = "ICEBERG_COMPATIBILITY"
