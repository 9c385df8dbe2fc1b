"""The kinds of writers, for which support for a table feature can differ.

A feature has different requirements for different writers: a table with generated columns is checkpointed
like any other table, but its new rows need computed values. So each feature lists the writer kinds that
support it (`TableFeature.writable_by`), and each writer passes its own kind to the check
(`require_write_support`). Unsupported operations are refused before anything is written, with the feature,
the operation and the writer kinds that support it.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum


class WriterKind(Enum):
    """One way of changing a table or its log.

    Attributes:
        heading: the column on the support page.
        words: the writer kind as part of a sentence in messages.
        description: the operations of the writer kind.
    """

    COMMIT = (
        "commit",
        "changes of the definition",
        "creating a table that uses the feature, enabling it, ALTER, a lease's fence: commits that add and "
        "remove no files",
    )
    ARROW_ROWS = (
        "rows (Arrow)",
        "rows from Arrow (write_deltalake)",
        "append, overwrite, replaceWhere, DELETE and UPDATE without Spark, group commits",
    )
    SPARK_ROWS = (
        "rows (Spark)",
        "rows from Spark (spark_jobs.write)",
        "append, overwrite and replaceWhere from a DataFrame, loads with a quality gate",
    )
    MERGE = ("merge", "MERGE", "MERGE on Spark")
    REWRITE = (
        "rewrite",
        "rewriting files (compaction, Z-order)",
        "compaction and Z-order: the same rows in other files",
    )
    RESTORE = (
        "restore",
        "restoring, cloning and converting",
        "existing files become part of a table together with the definition that they were written with: of "
        "an earlier version, of another table, or of Parquet files; lost files are removed (`repair`)",
    )
    CHECKPOINT = ("checkpoint", "checkpoints", "checkpoints of the log; no data file is opened")
    CLEANUP = ("clean-up", "cleaning up the log", "deleting log files before a checkpoint")
    VACUUM = ("vacuum", "vacuum", "deleting data files that no version needs, and the commits that record it")

    def __init__(self, heading: str, words: str, description: str) -> None:
        self.heading = heading
        self.words = words
        self.description = description

    @property
    def opens_data_files(self) -> bool:
        """Whether the writer may read rows directly from existing data files.

        Other writer kinds read old rows through a scan, or not at all.
        """
        return self in (WriterKind.SPARK_ROWS, WriterKind.MERGE)


ALL_WRITER_KINDS = frozenset(WriterKind)
"""Supported by every writer kind."""

NO_WRITER_KINDS: frozenset[WriterKind] = frozenset()
"""Not supported for writing."""

LOG_ONLY = frozenset({WriterKind.CHECKPOINT, WriterKind.CLEANUP, WriterKind.VACUUM})
"""Writer kinds that copy the log's records about files, or delete what is no longer referenced. A feature
that only affects the content of rows has no requirements for them."""


LOG_AND_RESTORE = LOG_ONLY | {WriterKind.RESTORE}
"""LOG_ONLY, and operations that make files part of a table together with their table definition."""

LOG_RESTORE_AND_REWRITE = LOG_AND_RESTORE | {WriterKind.REWRITE}
"""LOG_AND_RESTORE, and operations that copy rows unchanged to other files, with their row tracking."""

ROWS_WITHOUT_SPARK = LOG_ONLY | {WriterKind.COMMIT, WriterKind.ARROW_ROWS}
"""Only features that all of these support may be enabled; other writer kinds refuse tables by the feature."""

WITHOUT_SPARK = ROWS_WITHOUT_SPARK | LOG_RESTORE_AND_REWRITE
"""All writer kinds except those in which Spark creates rows."""


def in_words(writer_kinds: Collection[WriterKind]) -> str:
    """The writer kinds as part of a sentence, in the order of their definition; empty for none."""
    words = [item.words for item in WriterKind if item in writer_kinds]
    return " and ".join((", ".join(words[:-1]), words[-1])) if len(words) > 1 else "".join(words)
