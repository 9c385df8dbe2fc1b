"""Errors of tables as they are stored: their logs, versions, protocols."""

from __future__ import annotations

from delta_core.errors.base import DeltaError
from delta_core.errors.storage import StorageError


class InvalidTableError(DeltaError):
    """The table, as stored, cannot be read as asked."""

    code = "INVALID_TABLE"


class TableNotFoundError(InvalidTableError):
    """There is no Delta table at the URI."""

    code = "TABLE_NOT_FOUND"


class TableExistsError(InvalidTableError):
    """A table is already there and the call asked to create one."""

    code = "TABLE_EXISTS"


class VersionNotFoundError(InvalidTableError):
    """The version, or a version for the timestamp, is not (or no longer) in the log."""

    code = "VERSION_NOT_FOUND"


class CorruptLogError(InvalidTableError):
    """A log object is damaged or contradicts the protocol."""

    code = "CORRUPT_LOG"


class LogGapError(InvalidTableError):
    """A version is missing between two that exist."""

    code = "LOG_GAP"


class StaleListingError(StorageError):
    """A store with weak listings shows less of a table than it has shown before."""

    code = "STALE_LISTING"
    retryable = True


class MissingDataFileError(InvalidTableError):
    """A data file that the log lists is not in the store."""

    code = "MISSING_DATA_FILE"


class TableChangedError(InvalidTableError):
    """Rows were changed or removed where only new ones can be told from what was there before."""

    code = "TABLE_CHANGED"


class RowTrackingDisabledError(InvalidTableError):
    """Ids or versions of rows were asked for, and the table does not keep them."""

    code = "ROW_TRACKING_DISABLED"


class PathEscapeError(InvalidTableError):
    """A path in the log leaves the table's root."""

    code = "PATH_ESCAPE"


class ProtocolError(DeltaError):
    """The table needs something that this library does not do."""

    code = "PROTOCOL_ERROR"


class UnsupportedTableFeatureError(ProtocolError):
    """A table feature, named in the message, is not supported for this operation."""

    code = "UNSUPPORTED_TABLE_FEATURE"


class FeatureRemovalError(ProtocolError):
    """A table feature cannot be dropped now; the message says what still needs it."""

    code = "FEATURE_REMOVAL_REFUSED"


class IcebergCompatibilityError(ProtocolError):
    """A commit would break what `icebergCompatV1` or `icebergCompatV2` promises."""

    code = "ICEBERG_COMPATIBILITY"
