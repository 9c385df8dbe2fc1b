"""Table properties: key, default, parsing and validation (PROTOCOL.md, "Table Properties").

An invalid value of a property is an error where the property is used, not where the table is opened: a table
stays readable with an invalid property that reading does not need.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar, cast

from delta_core.errors import InvalidTablePropertyError

T = TypeVar("T")

DAY_MS = 86_400_000

_UNITS_MS = {
    "week": 7 * DAY_MS,
    "day": DAY_MS,
    "hour": 3_600_000,
    "minute": 60_000,
    "second": 1_000,
    "millisecond": 1,
}
_INTERVAL_PART = re.compile(r"([+-]?\d{1,15})\s+(week|day|hour|minute|second|millisecond|microsecond)s?")
_BYTES = re.compile(r"(\d{1,18})\s*([kmgtp]?)i?b?")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableProperty(Generic[T]):
    """One property, and how its string becomes a value.

    Attributes:
        key: the name in `metaData.configuration`.
        default: the value where the table does not set it.
        parse: string to value; raises ValueError.
        validate: the problem of a parsed value as a sentence, or None.
        help: one sentence for users.
        accepted: a description of the accepted strings, where it does not follow from `parse`.
    """

    key: str
    default: T
    parse: Callable[[str], T]
    help: str
    validate: Callable[[T], str | None] = field(default=lambda _: None)
    accepted: str = ""

    def of(self, configuration: Mapping[str, str]) -> T:
        """The value of the property in a table's configuration.

        Raises:
            InvalidTablePropertyError: the string is not a value of the property.
        """
        value_string = configuration.get(self.key)
        if value_string is None:
            return self.default
        try:
            value = self.parse(value_string)
            problem = self.validate(value)
        except ValueError as error:
            problem = str(error)
        if problem:
            raise InvalidTablePropertyError(
                f"The table property {self.key} cannot be {value_string!r}.", cause=problem, fix=self._advice
            )
        return value

    @property
    def _advice(self) -> str:
        accepted = self.accepted or _ACCEPTED.get(self.parse)
        return f"Set it to {accepted}. Its meaning: {self.help}" if accepted else self.help


def parse_integer(string: str) -> int:
    """Parse an integer. Raises ValueError."""
    try:
        return int(string)
    except ValueError:
        raise ValueError(f"{string!r} is not an integer.") from None


def parse_interval_ms(string: str) -> int:
    """Parse a duration such as `interval 30 days` or `interval 1 week 2 hours` to milliseconds.

    Raises:
        ValueError: not a duration; months and years have no fixed length and are refused.
    """
    rest = string.strip().lower().removeprefix("interval").strip()
    total_us, matched = 0, False
    while rest:
        part = _INTERVAL_PART.match(rest)
        if part is None:
            raise ValueError(f"{string!r} is not an interval such as 'interval 30 days'.")
        amount, unit = int(part.group(1)), part.group(2)
        total_us += amount if unit == "microsecond" else amount * _UNITS_MS[unit] * 1000
        rest, matched = rest[part.end() :].strip(), True
    if not matched:
        raise ValueError("The interval is empty.")
    return total_us // 1000


def parse_bytes(string: str) -> int:
    """Parse a size such as `1073741824`, `128mb` or `1g` to bytes (binary units). Raises ValueError."""
    match = _BYTES.fullmatch(string.strip().lower())
    if match is None:
        raise ValueError(f"{string!r} is not a size such as '128mb'.")
    shift: int = 10 * " kmgtp".index(match.group(2) or " ")
    return int(match.group(1)) << shift


def parse_bool(string: str) -> bool:
    """Parse `true` or `false` in any case. Raises ValueError."""
    folded = string.strip().lower()
    if folded not in ("true", "false"):
        raise ValueError("It is neither true nor false.")
    return folded == "true"


_ACCEPTED: dict[Callable[[str], object], str] = {
    parse_bool: "true or false",
    parse_integer: "an integer",
    parse_interval_ms: "an interval such as 'interval 7 days'",
    parse_bytes: "a size such as '128mb'",
}


def canonical_string(key: str, string: str) -> str:
    """The spelling of a property's value that every engine supports; this library accepts more spellings.

    Other engines compare with `true`, and require intervals to begin with `interval`. Invalid values are
    returned unchanged and refused by validation.
    """
    if not isinstance(string, str) or key.startswith("delta.constraints.") or not key.startswith("delta."):
        return string
    folded = " ".join(string.lower().split())
    if folded in ("true", "false"):
        return folded
    if key == CHECKPOINT_POLICY.key:
        return folded
    if key in _INTERVALS:
        try:
            parse_interval_ms(folded)
        except ValueError:
            return string
        return folded if folded.startswith("interval ") else f"interval {folded}"
    return string


def _not_negative(value: int) -> str | None:
    return "It is negative." if value < 0 else None


def _positive(value: int) -> str | None:
    return None if value > 0 else "It is not positive."


def _at_least_minus_one(value: int) -> str | None:
    return None if value >= -1 else "It is below -1."


def _policy(value: str) -> str | None:
    # Another value would enable the feature `v2Checkpoint` but write classic checkpoints.
    return None if value.strip().lower() in ("classic", "v2") else "It is neither classic nor v2."


def _formats(values: tuple[str, ...]) -> str | None:
    unknown = sorted({*values} - {"iceberg", "hudi"})
    return f"The format {', '.join(unknown)} does not exist." if unknown else None


def _isolation(value: str) -> str | None:
    known = ("Serializable", "WriteSerializable", "SnapshotIsolation")
    return None if value in known else f"It is not one of {', '.join(known)}."


def _codec(string: str) -> str:
    folded = string.strip().lower()
    codec = {"uncompressed": "none", "lz4": "lz4_raw"}.get(folded, folded)
    if codec not in ("snappy", "zstd", "gzip", "brotli", "lz4_raw", "none"):
        raise ValueError("The codec is not supported.")
    return codec


def _page_version(string: str) -> str:
    if re.fullmatch(r"1\.0\.0|2\.\d+\.\d+", string) is None:
        raise ValueError("It is neither 1.0.0 nor a version such as 2.12.0.")
    return f"{string[0]}.0"


def _column_list(string: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in string.split(",") if part.strip())


def _optional_columns(string: str) -> tuple[str, ...] | None:
    return _column_list(string)


def _flag(key: str, default: bool, help_text: str) -> TableProperty[bool]:
    return TableProperty(key=key, default=default, parse=parse_bool, help=help_text)


def _interval(key: str, days: int, help_text: str) -> TableProperty[int]:
    return TableProperty(
        key=key, default=days * DAY_MS, parse=parse_interval_ms, validate=_not_negative, help=help_text
    )


APPEND_ONLY = _flag("delta.appendOnly", False, "Set it to true to forbid deleting and changing rows.")
CHECKPOINT_INTERVAL = TableProperty(
    key="delta.checkpointInterval",
    default=10,
    parse=parse_integer,
    validate=_positive,
    accepted="an integer of at least 1",
    help="Number of commits between two checkpoints.",
)
WRITE_STATS_AS_JSON = _flag(
    "delta.checkpoint.writeStatsAsJson", True, "Whether checkpoints contain statistics as JSON."
)
WRITE_STATS_AS_STRUCT = _flag(
    "delta.checkpoint.writeStatsAsStruct", False, "Whether checkpoints contain statistics as columns."
)
LOG_RETENTION = _interval("delta.logRetentionDuration", 30, "How long versions stay in the log.")
DELETED_FILE_RETENTION = _interval(
    "delta.deletedFileRetentionDuration", 7, "How long removed files stay in the store."
)
ENABLE_EXPIRED_LOG_CLEANUP = _flag(
    "delta.enableExpiredLogCleanup", True, "Whether expired log files are deleted after a checkpoint."
)
DATA_SKIPPING_NUM_INDEXED_COLS = TableProperty(
    key="delta.dataSkippingNumIndexedCols",
    default=32,
    parse=parse_integer,
    validate=_at_least_minus_one,
    accepted="an integer of at least -1",
    help="Number of leading columns with statistics; -1 means all.",
)
DATA_SKIPPING_STATS_COLUMNS: TableProperty[tuple[str, ...] | None] = TableProperty(
    key="delta.dataSkippingStatsColumns",
    default=None,
    parse=_optional_columns,
    help="Comma-separated columns with statistics; overrides delta.dataSkippingNumIndexedCols.",
)
DATA_SKIPPING_STRING_PREFIX_LENGTH = TableProperty(
    key="delta.dataSkippingStringPrefixLength",
    default=32,
    parse=parse_integer,
    validate=_positive,
    accepted="an integer of at least 1",
    help="Number of characters that bounds of strings are truncated to in statistics.",
)
PARQUET_COMPRESSION_CODEC = TableProperty(
    key="delta.parquet.compression.codec",
    default="snappy",
    parse=_codec,
    accepted="snappy, zstd, gzip, brotli, lz4_raw or none",
    help="Codec of new data files and checkpoints.",
)
PARQUET_FORMAT_VERSION = TableProperty(
    key="delta.parquet.format.version",
    default="1.0",
    parse=_page_version,
    accepted="1.0.0, or 2 with a minor and a patch version such as 2.12.0",
    help="Format of data pages in new Parquet files.",
)
WRITE_PARTITION_COLUMNS = _flag(
    "delta.writePartitionColumnsToParquet",
    False,
    "Whether new data files also contain the partition columns, regardless of table features.",
)
ISOLATION_LEVEL = TableProperty(
    key="delta.isolationLevel",
    default="WriteSerializable",
    parse=str,
    validate=_isolation,
    accepted="Serializable, WriteSerializable or SnapshotIsolation",
    help="The isolation level of concurrent writers.",
)
TARGET_FILE_SIZE = TableProperty(
    key="delta.targetFileSize",
    default=1024**3,
    parse=parse_bytes,
    validate=_positive,
    accepted="a size above 0 such as '128mb'",
    help="Target file size of compaction.",
)
RANDOMIZE_FILE_PREFIXES = _flag(
    "delta.randomizeFilePrefixes", False, "Whether data files get a random prefix directory."
)
RANDOM_PREFIX_LENGTH = TableProperty(
    key="delta.randomPrefixLength",
    default=2,
    parse=parse_integer,
    validate=_positive,
    accepted="an integer of at least 1",
    help="Number of characters of a random prefix.",
)
ENABLE_CHANGE_DATA_FEED = _flag("delta.enableChangeDataFeed", False, "Whether changes of rows are recorded.")
ENABLE_DELETION_VECTORS = _flag(
    "delta.enableDeletionVectors", False, "Whether rows may be deleted without rewriting files."
)
ENABLE_ROW_TRACKING = _flag("delta.enableRowTracking", False, "Whether rows have stable identifiers.")
ROW_TRACKING_SUSPENDED = _flag(
    "delta.rowTrackingSuspended", False, "Whether new rows temporarily get no identifiers."
)
ENABLE_IN_COMMIT_TIMESTAMPS = _flag(
    "delta.enableInCommitTimestamps", False, "Whether commits contain their timestamp."
)
ENABLE_TYPE_WIDENING = _flag("delta.enableTypeWidening", False, "Whether column types may be widened.")
COLUMN_MAPPING_MODE = TableProperty(
    key="delta.columnMapping.mode", default="none", parse=str, help="none, name or id."
)
CHECKPOINT_POLICY = TableProperty(
    key="delta.checkpointPolicy",
    default="classic",
    parse=str,
    validate=_policy,
    accepted="classic or v2",
    help="The kind of checkpoints that are written.",
)
UNIVERSAL_FORMATS: TableProperty[tuple[str, ...]] = TableProperty(
    key="delta.universalFormat.enabledFormats",
    default=(),
    parse=_column_list,
    validate=_formats,
    accepted="iceberg, hudi, or both separated by a comma",
    help="Formats in which other engines also maintain metadata.",
)
SET_TRANSACTION_RETENTION: TableProperty[int | None] = TableProperty(
    key="delta.setTransactionRetentionDuration",
    default=None,
    parse=parse_interval_ms,
    help="How long application transaction identifiers are kept; unset means forever.",
)

_INTERVALS = frozenset({LOG_RETENTION.key, DELETED_FILE_RETENTION.key, SET_TRANSACTION_RETENTION.key})

ALL_PROPERTIES: tuple[TableProperty[object], ...] = cast(
    "tuple[TableProperty[object], ...]",
    tuple(value for value in list(globals().values()) if isinstance(value, TableProperty)),
)


@dataclass(frozen=True, slots=True)
class TableProperties:
    """A table's properties as typed attributes; each is parsed on access."""

    configuration: Mapping[str, str]

    @classmethod
    def of(cls, configuration: Mapping[str, str]) -> TableProperties:
        """The properties in `metaData.configuration`."""
        return cls(configuration)

    def validate(self) -> None:
        """Parse every known property. Raises InvalidTablePropertyError for the first invalid one."""
        for item in ALL_PROPERTIES:
            item.of(self.configuration)

    @property
    def append_only(self) -> bool:
        """Whether rows may only be added."""
        return APPEND_ONLY.of(self.configuration)

    @property
    def checkpoint_interval(self) -> int:
        """Commits between two checkpoints."""
        return CHECKPOINT_INTERVAL.of(self.configuration)

    @property
    def log_retention_ms(self) -> int:
        """How long versions stay in the log."""
        return LOG_RETENTION.of(self.configuration)

    @property
    def deleted_file_retention_ms(self) -> int:
        """How long removed files stay in the store."""
        return DELETED_FILE_RETENTION.of(self.configuration)

    @property
    def enable_expired_log_cleanup(self) -> bool:
        """Whether expired log files are deleted after a checkpoint."""
        return ENABLE_EXPIRED_LOG_CLEANUP.of(self.configuration)

    @property
    def data_skipping_num_indexed_cols(self) -> int:
        """Number of leading columns with statistics; -1 means all."""
        return DATA_SKIPPING_NUM_INDEXED_COLS.of(self.configuration)

    @property
    def data_skipping_stats_columns(self) -> tuple[str, ...] | None:
        """Columns with statistics, when listed by name."""
        return DATA_SKIPPING_STATS_COLUMNS.of(self.configuration)

    @property
    def data_skipping_string_prefix_length(self) -> int:
        """Number of characters that bounds of strings are truncated to."""
        return DATA_SKIPPING_STRING_PREFIX_LENGTH.of(self.configuration)

    @property
    def isolation_level(self) -> str:
        """Serializable, WriteSerializable or SnapshotIsolation."""
        return ISOLATION_LEVEL.of(self.configuration)

    @property
    def target_file_size_bytes(self) -> int:
        """Target file size of compaction."""
        return TARGET_FILE_SIZE.of(self.configuration)

    @property
    def randomize_file_prefixes(self) -> bool:
        """Whether data files get a random prefix directory."""
        return RANDOMIZE_FILE_PREFIXES.of(self.configuration)

    @property
    def random_prefix_length(self) -> int:
        """Number of characters of a random prefix."""
        return RANDOM_PREFIX_LENGTH.of(self.configuration)

    @property
    def set_transaction_retention_ms(self) -> int | None:
        """How long application transaction identifiers are kept; None means forever."""
        return SET_TRANSACTION_RETENTION.of(self.configuration)

    @property
    def write_stats_as_json(self) -> bool:
        """Whether checkpoints contain statistics as JSON."""
        return WRITE_STATS_AS_JSON.of(self.configuration)

    @property
    def write_stats_as_struct(self) -> bool:
        """Whether checkpoints contain statistics as columns."""
        return WRITE_STATS_AS_STRUCT.of(self.configuration)
