"""Settings of Spark sessions that change what SQL means, how files are read and how they are written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ZONE = "spark.sql.session.timeZone"
_PARQUET = "spark.sql.parquet"

HOSTILE: Mapping[str, Mapping[str, str]] = {
    "New York": {_ZONE: "America/New_York"},
    "Kolkata, timestamps without a zone": {
        _ZONE: "Asia/Kolkata",
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
    },
    "Apia, the old formatter": {_ZONE: "Pacific/Apia", "spark.sql.legacy.timeParserPolicy": "LEGACY"},
    "no ANSI": {
        "spark.sql.ansi.enabled": "false",
        "spark.sql.decimalOperations.allowPrecisionLoss": "false",
        "spark.sql.legacy.sizeOfNull": "true",
        "spark.sql.storeAssignmentPolicy": "LEGACY",
        "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    },
    "no ANSI in Juneau": {"spark.sql.ansi.enabled": "false", _ZONE: "America/Juneau"},
    "case counts": {"spark.sql.caseSensitive": "true"},
    "another notation": {
        "spark.sql.parser.escapedStringLiterals": "true",
        "spark.sql.ansi.doubleQuotedIdentifiers": "true",
        "spark.sql.ansi.enforceReservedKeywords": "true",
    },
    "the old calendar": {
        f"{_PARQUET}.datetimeRebaseModeInRead": "LEGACY",
        f"{_PARQUET}.datetimeRebaseModeInWrite": "LEGACY",
        f"{_PARQUET}.int96RebaseModeInRead": "LEGACY",
        f"{_PARQUET}.int96RebaseModeInWrite": "LEGACY",
    },
    "no calendar": {
        f"{_PARQUET}.datetimeRebaseModeInRead": "EXCEPTION",
        f"{_PARQUET}.datetimeRebaseModeInWrite": "EXCEPTION",
    },
    "lost files": {
        "spark.sql.files.ignoreMissingFiles": "true",
        "spark.sql.files.ignoreCorruptFiles": "true",
        f"{_PARQUET}.mergeSchema": "true",
        "spark.sql.files.maxRecordsPerFile": "1",
    },
    "old Parquet": {
        f"{_PARQUET}.writeLegacyFormat": "true",
        f"{_PARQUET}.outputTimestampType": "INT96",
        f"{_PARQUET}.binaryAsString": "true",
        f"{_PARQUET}.int96AsTimestamp": "false",
        f"{_PARQUET}.inferTimestampNTZ.enabled": "false",
        "spark.sql.legacy.parquet.nanosAsLong": "true",
    },
    "row by row": {
        f"{_PARQUET}.enableVectorizedReader": "false",
        f"{_PARQUET}.recordLevelFilter.enabled": "true",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.adaptive.enabled": "false",
    },
    "directories": {
        "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
        "spark.sql.sources.validatePartitionColumns": "false",
        "spark.sql.sources.partitionOverwriteMode": "dynamic",
        _ZONE: "Europe/Berlin",
    },
    "dates as text": {
        "spark.sql.legacy.typeCoercion.datetimeToString.enabled": "true",
        "spark.sql.legacy.followThreeValuedLogicInArrayExists": "false",
        "spark.sql.legacy.charVarcharAsString": "true",
    },
    "large Arrow": {
        "spark.sql.execution.arrow.useLargeVarTypes": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
        _ZONE: "Australia/Lord_Howe",
    },
}
"""Each by what is odd in it."""

TOGETHER = (
    ("New York", "the old calendar"),
    ("Kolkata, timestamps without a zone", "row by row", "dates as text", "lost files", "case counts"),
    ("no ANSI", "Apia, the old formatter", "another notation", "old Parquet"),
    ("no ANSI in Juneau", "no calendar"),
    ("directories", "large Arrow"),
)
"""Sessions that are several of them, each of which some run has; of two zones the last one counts."""


def together(*names: str) -> dict[str, str]:
    """The settings of several."""
    return {key: value for name in names for key, value in HOSTILE[name].items()}


@contextmanager
def set_so(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """The session with the settings; afterwards as it was. Checks that whatever ran left them alone."""
    before = {key: spark.conf.get(key, None) for key in settings}
    try:
        for key, value in settings.items():
            spark.conf.set(key, value)
        yield
        assert {key: spark.conf.get(key, None) for key in settings} == dict(settings)
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)
