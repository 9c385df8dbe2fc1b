"""The surfaces through which this library writes: where support for a table feature can differ.

A feature asks different things of different writers: a table with generated columns is checkpointed like any
other, and its rows need their values computed. So each feature says by which surfaces it is written correctly
(`TableFeature.writable_by`), and each writer names its own when it asks (`require_write_support`). Whatever a
surface does not do is refused before anything is written, with the feature, the operation and the surfaces
that could do it.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum


class WriterKind(Enum):
    """One way of changing a table or its log.

    Attributes:
        heading: the surface's column on the support page.
        words: the surface in a message.
        description: what belongs to it.
    """

    COMMIT = (
        "commit",
        "changes of the definition",
        "creating a table that uses the feature, turning it on, ALTER, a lease's fence: commits that add and "
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
        "append, overwrite and replaceWhere from a DataFrame, loads behind the quality gate",
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
        "files that are there already become part of a table with the definition that they were written for: "
        "an earlier version's, another table's, or no table's yet; lost files are taken out (`repair`)",
    )
    CHECKPOINT = ("checkpoint", "checkpoints", "checkpoints of the log; no data file is opened")
    CLEANUP = ("clean-up", "cleaning up the log", "deleting log files behind a checkpoint")
    VACUUM = ("vacuum", "vacuum", "deleting data files that no version needs, and the commits that say so")

    def __init__(self, heading: str, words: str, description: str) -> None:
        self.heading = heading
        self.words = words
        self.description = description

    @property
    def opens_data_files(self) -> bool:
        """Whether rows of existing data files may be read on the way, as they are in the files.

        The others need old rows as a scan gives them, or not at all.
        """
        return self in (WriterKind.SPARK_ROWS, WriterKind.MERGE)


ALL_WRITER_KINDS = frozenset(WriterKind)
"""Written correctly by every writer there is."""

NO_WRITER_KINDS: frozenset[WriterKind] = frozenset()
"""Not written at all."""

LOG_ONLY = frozenset({WriterKind.CHECKPOINT, WriterKind.CLEANUP, WriterKind.VACUUM})
"""They move what the log says of files from one place to another, or delete what it no longer names. A
feature that only says what rows are, or how new ones are made, asks nothing of them."""


AS_THEY_STAND = LOG_ONLY | {WriterKind.RESTORE}
"""Those, and who makes files part of a table together with the definition that they were written for."""

MOVED_ROWS = AS_THEY_STAND | {WriterKind.REWRITE}
"""And who moves rows from file to file: they are neither made nor changed, with what the log says of them."""

ROWS_WITHOUT_SPARK = LOG_ONLY | {WriterKind.COMMIT, WriterKind.ARROW_ROWS}
"""A definition may ask for a feature that all of these write; the others refuse its tables by its name."""

WITHOUT_SPARK = ROWS_WITHOUT_SPARK | MOVED_ROWS
"""All but those that have Spark make rows."""


def in_words(writer_kinds: Collection[WriterKind]) -> str:
    """The surfaces as part of a sentence, in the order in which they are defined; empty for none."""
    words = [item.words for item in WriterKind if item in writer_kinds]
    return " and ".join((", ".join(words[:-1]), words[-1])) if len(words) > 1 else "".join(words)
