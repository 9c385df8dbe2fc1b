"""Table properties: key, default, how the text is read, what is allowed (PROTOCOL.md, "Table Properties").

A property that a table sets to a nonsensical value is an error where it is used, not where the table
is opened: a table stays readable with a broken property that reading does not need.
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
    """One property: how its text becomes a value.

    Attributes:
        key: the name in `metaData.configuration`.
        default: the value where the table does not set it.
        parse: text to value; raises ValueError.
        validate: what is wrong with a parsed value, or None.
        help: one sentence for users.
        accepted: which texts, where `parse` alone does not say it.
    """

    key: str
    default: T
    parse: Callable[[str], T]
    help: str
    validate: Callable[[T], str | None] = field(default=lambda _: None)
    accepted: str = ""

    def of(self, configuration: Mapping[str, str]) -> T:
        """The table's value.

        Raises:
            InvalidTablePropertyError: the text is not a value of the property.
        """
        text = configuration.get(self.key)
        if text is None:
            return self.default
        try:
            value = self.parse(text)
            problem = self.validate(value)
        except ValueError as error:
            problem = str(error)
        if problem:
            raise InvalidTablePropertyError(
                f"The table property {self.key} cannot be {text!r}.", cause=problem, fix=self._advice
            )
        return value

    @property
    def _advice(self) -> str:
        accepted = self.accepted or _ACCEPTED.get(self.parse)
        return f"Set it to {accepted}. What it says: {self.help}" if accepted else self.help


def parse_whole(text: str) -> int:
    """A whole number. Raises ValueError."""
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is no whole number") from None


def parse_interval_ms(text: str) -> int:
    """A duration such as `interval 30 days` or `interval 1 week 2 hours`, in milliseconds.

    Raises:
        ValueError: not such a text; months and years have no fixed length and are refused.
    """
    rest = text.strip().lower().removeprefix("interval").strip()
    total_us, matched = 0, False
    while rest:
        part = _INTERVAL_PART.match(rest)
        if part is None:
            raise ValueError(f"{text!r} is not an interval such as 'interval 30 days'")
        amount, unit = int(part.group(1)), part.group(2)
        total_us += amount if unit == "microsecond" else amount * _UNITS_MS[unit] * 1000
        rest, matched = rest[part.end() :].strip(), True
    if not matched:
        raise ValueError("the interval is empty")
    return total_us // 1000


def parse_bytes(text: str) -> int:
    """A size such as `1073741824`, `128mb` or `1g`, in bytes (binary units). Raises ValueError."""
    match = _BYTES.fullmatch(text.strip().lower())
    if match is None:
        raise ValueError(f"{text!r} is not a size such as '128mb'")
    shift: int = 10 * " kmgtp".index(match.group(2) or " ")
    return int(match.group(1)) << shift


def parse_bool(text: str) -> bool:
    """`true` or `false` in any case. Raises ValueError."""
    folded = text.strip().lower()
    if folded not in ("true", "false"):
        raise ValueError("it is neither true nor false")
    return folded == "true"


_ACCEPTED: dict[Callable[[str], object], str] = {
    parse_bool: "true or false",
    parse_whole: "a whole number",
    parse_interval_ms: "an interval such as 'interval 7 days'",
    parse_bytes: "a size such as '128mb'",
}


def canonical_string(key: str, text: str) -> str:
    """The spelling of a property's value that every engine understands, where we understand more.

    Others compare with `true`, and want intervals to begin with `interval`. What is no value of the
    property stays as it is, to be refused by its own error.
    """
    if not isinstance(text, str) or key.startswith("delta.constraints.") or not key.startswith("delta."):
        return text
    folded = " ".join(text.lower().split())
    if folded in ("true", "false"):
        return folded
    if key == CHECKPOINT_POLICY.key:
        return folded
    if key in _INTERVALS:
        try:
            parse_interval_ms(folded)
        except ValueError:
            return text
        return folded if folded.startswith("interval ") else f"interval {folded}"
    return text


def _not_negative(value: int) -> str | None:
    return "it is negative" if value < 0 else None


def _positive(value: int) -> str | None:
    return None if value > 0 else "it is not positive"


def _at_least_minus_one(value: int) -> str | None:
    return None if value >= -1 else "it is below -1"


def _policy(value: str) -> str | None:
    # Another name would give the table the feature `v2Checkpoint` and classic checkpoints.
    return None if value.strip().lower() in ("classic", "v2") else "it is neither classic nor v2"


def _formats(values: tuple[str, ...]) -> str | None:
    unknown = sorted({*values} - {"iceberg", "hudi"})
    return f"there is no format {', '.join(unknown)}" if unknown else None


def _isolation(value: str) -> str | None:
    known = ("Serializable", "WriteSerializable", "SnapshotIsolation")
    return None if value in known else f"it is none of {', '.join(known)}"


def _codec(text: str) -> str:
    folded = text.strip().lower()
    codec = {"uncompressed": "none", "lz4": "lz4_raw"}.get(folded, folded)
    if codec not in ("snappy", "zstd", "gzip", "brotli", "lz4_raw", "none"):
        raise ValueError("there is no such codec here")
    return codec


def _page_version(text: str) -> str:
    if re.fullmatch(r"1\.0\.0|2\.\d+\.\d+", text) is None:
        raise ValueError("it is neither 1.0.0 nor a version such as 2.12.0")
    return f"{text[0]}.0"


def _column_list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _optional_columns(text: str) -> tuple[str, ...] | None:
    return _column_list(text)


def _flag(key: str, default: bool, help_text: str) -> TableProperty[bool]:
    return TableProperty(key=key, default=default, parse=parse_bool, help=help_text)


def _interval(key: str, days: int, help_text: str) -> TableProperty[int]:
    return TableProperty(
        key=key, default=days * DAY_MS, parse=parse_interval_ms, validate=_not_negative, help=help_text
    )


APPEND_ONLY = _flag("delta.appendOnly", False, "Set true to forbid deleting and changing rows.")
CHECKPOINT_INTERVAL = TableProperty(
    key="delta.checkpointInterval",
    default=10,
    parse=parse_whole,
    validate=_positive,
    accepted="a whole number from 1 on",
    help="Number of commits between two checkpoints.",
)
WRITE_STATS_AS_JSON = _flag(
    "delta.checkpoint.writeStatsAsJson", True, "Whether checkpoints hold statistics as JSON text."
)
WRITE_STATS_AS_STRUCT = _flag(
    "delta.checkpoint.writeStatsAsStruct", False, "Whether checkpoints hold statistics as columns."
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
    parse=parse_whole,
    validate=_at_least_minus_one,
    accepted="a whole number from -1 on",
    help="Number of leading columns with statistics; -1 is all.",
)
DATA_SKIPPING_STATS_COLUMNS: TableProperty[tuple[str, ...] | None] = TableProperty(
    key="delta.dataSkippingStatsColumns",
    default=None,
    parse=_optional_columns,
    help="Comma-separated columns with statistics; overrides the number.",
)
DATA_SKIPPING_STRING_PREFIX_LENGTH = TableProperty(
    key="delta.dataSkippingStringPrefixLength",
    default=32,
    parse=parse_whole,
    validate=_positive,
    accepted="a whole number from 1 on",
    help="Number of characters that bounds of strings are cut to in statistics.",
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
    "Whether new data files hold the partition columns too, where no table feature says it.",
)
ISOLATION_LEVEL = TableProperty(
    key="delta.isolationLevel",
    default="WriteSerializable",
    parse=str,
    validate=_isolation,
    accepted="Serializable, WriteSerializable or SnapshotIsolation",
    help="How far writers at the same time are kept apart.",
)
TARGET_FILE_SIZE = TableProperty(
    key="delta.targetFileSize",
    default=1024**3,
    parse=parse_bytes,
    validate=_positive,
    accepted="a size above 0 such as '128mb'",
    help="Size that compaction aims at.",
)
RANDOMIZE_FILE_PREFIXES = _flag(
    "delta.randomizeFilePrefixes", False, "Whether data files get a random prefix directory."
)
RANDOM_PREFIX_LENGTH = TableProperty(
    key="delta.randomPrefixLength",
    default=2,
    parse=parse_whole,
    validate=_positive,
    accepted="a whole number from 1 on",
    help="Number of characters of a random prefix.",
)
ENABLE_CHANGE_DATA_FEED = _flag("delta.enableChangeDataFeed", False, "Whether changes of rows are recorded.")
ENABLE_DELETION_VECTORS = _flag(
    "delta.enableDeletionVectors", False, "Whether rows may be deleted without rewriting files."
)
ENABLE_ROW_TRACKING = _flag("delta.enableRowTracking", False, "Whether rows have stable identifiers.")
ROW_TRACKING_SUSPENDED = _flag(
    "delta.rowTrackingSuspended", False, "Whether new rows get no identifiers for the time being."
)
ENABLE_IN_COMMIT_TIMESTAMPS = _flag(
    "delta.enableInCommitTimestamps", False, "Whether a commit's time is in the commit."
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
    help="Which kind of checkpoints is written.",
)
UNIVERSAL_FORMATS: TableProperty[tuple[str, ...]] = TableProperty(
    key="delta.universalFormat.enabledFormats",
    default=(),
    parse=_column_list,
    validate=_formats,
    accepted="iceberg, hudi, or both with a comma between them",
    help="Formats that other engines keep metadata in.",
)
SET_TRANSACTION_RETENTION: TableProperty[int | None] = TableProperty(
    key="delta.setTransactionRetentionDuration",
    default=None,
    parse=parse_interval_ms,
    help="How long application transaction identifiers are kept; unset is for ever.",
)

_INTERVALS = frozenset({LOG_RETENTION.key, DELETED_FILE_RETENTION.key, SET_TRANSACTION_RETENTION.key})

ALL_PROPERTIES: tuple[TableProperty[object], ...] = cast(
    "tuple[TableProperty[object], ...]",
    tuple(value for value in list(globals().values()) if isinstance(value, TableProperty)),
)


@dataclass(frozen=True, slots=True)
class TableProperties:
    """A table's properties by typed attribute; each is parsed when asked for."""

    configuration: Mapping[str, str]

    @classmethod
    def of(cls, configuration: Mapping[str, str]) -> TableProperties:
        """The properties in `metaData.configuration`."""
        return cls(configuration)

    def validate(self) -> None:
        """Parse every known property. Raises InvalidTablePropertyError for the first that is wrong."""
        for item in ALL_PROPERTIES:
            item.of(self.configuration)

    @property
    def append_only(self) -> bool:
        """Rows may only be added."""
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
        """Leading columns with statistics; -1 is all."""
        return DATA_SKIPPING_NUM_INDEXED_COLS.of(self.configuration)

    @property
    def data_skipping_stats_columns(self) -> tuple[str, ...] | None:
        """Columns with statistics, when listed by name."""
        return DATA_SKIPPING_STATS_COLUMNS.of(self.configuration)

    @property
    def data_skipping_string_prefix_length(self) -> int:
        """Characters that bounds of strings are cut to."""
        return DATA_SKIPPING_STRING_PREFIX_LENGTH.of(self.configuration)

    @property
    def isolation_level(self) -> str:
        """Serializable, WriteSerializable or SnapshotIsolation."""
        return ISOLATION_LEVEL.of(self.configuration)

    @property
    def target_file_size_bytes(self) -> int:
        """Size that compaction aims at."""
        return TARGET_FILE_SIZE.of(self.configuration)

    @property
    def randomize_file_prefixes(self) -> bool:
        """Whether data files get a random prefix directory."""
        return RANDOMIZE_FILE_PREFIXES.of(self.configuration)

    @property
    def random_prefix_length(self) -> int:
        """Characters of a random prefix."""
        return RANDOM_PREFIX_LENGTH.of(self.configuration)

    @property
    def set_transaction_retention_ms(self) -> int | None:
        """How long application transaction identifiers are kept; None is for ever."""
        return SET_TRANSACTION_RETENTION.of(self.configuration)

    @property
    def write_stats_as_json(self) -> bool:
        """Whether checkpoints hold statistics as JSON text."""
        return WRITE_STATS_AS_JSON.of(self.configuration)

    @property
    def write_stats_as_struct(self) -> bool:
        """Whether checkpoints hold statistics as columns."""
        return WRITE_STATS_AS_STRUCT.of(self.configuration)
