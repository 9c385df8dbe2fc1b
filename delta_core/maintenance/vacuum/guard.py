"""Unconditional safety checks of a vacuum: the table's directory, and the files that it never deletes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, partial
from urllib.parse import urlsplit

from delta_core.errors import MaintenanceError
from delta_core.log.outer_tables import is_in_log
from delta_core.maintenance.vacuum.listing import HIDDEN, FileKind, kind_in_folder, may_have_iceberg_metadata
from delta_core.snapshot.snapshot import Snapshot


def require_table_directory(root_uri: str) -> None:
    """Refuse a table that is the root of a file system, of a bucket or of a container, or is in a log.

    Raises:
        MaintenanceError: the table is such a root, and a vacuum would delete all unrelated files in it; or it
            is in the log of another table, and a vacuum would delete files of that log.
    """
    if is_in_log(root_uri):
        raise MaintenanceError(
            f"The table {root_uri!r} cannot be vacuumed.",
            cause="Its directory is in the log of another table.",
            fix="Move the table into a directory of its own.",
        )
    if urlsplit(root_uri).path.strip("/"):
        return
    raise MaintenanceError(
        f"The table {root_uri!r} cannot be vacuumed.",
        cause="It is the root of a file system, bucket or container, which may contain files of other "
        "applications.",
        fix="Move the table into a directory of its own.",
    )


def require_deletable(snapshot: Snapshot, paths: Iterable[str]) -> None:
    """Refuse a plan with files that a vacuum never deletes, such as files of the log.

    Raises:
        MaintenanceError: the plan contains such a file: it was not made by `plan_vacuum`, or was edited.
    """
    for_iceberg = may_have_iceberg_metadata(snapshot)
    # Cached, since few directories contain many files.
    kind_in = cache(
        partial(kind_in_folder, partition_columns=snapshot.partition_columns, for_iceberg=for_iceberg)
    )
    for path in paths:
        folder, _, name = path.rpartition("/")
        kind = kind_in(folder)
        if kind is FileKind.KEPT or (name.startswith(HIDDEN) and kind is not FileKind.STAGING):
            raise MaintenanceError(
                f"The plan contains the file {path!r}, which a vacuum must not delete.",
                cause="A vacuum never deletes the log, Iceberg metadata, or files and directories whose "
                "names begin with an underscore or a dot.",
                fix="Make a new plan, and do not edit it.",
            )
