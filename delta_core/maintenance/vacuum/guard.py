"""What a vacuum refuses whatever it is asked: places that hold more than a table, files that are not data."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, partial
from urllib.parse import urlsplit

from delta_core.errors import MaintenanceError
from delta_core.maintenance.vacuum.listing import HIDDEN, FileKind, kind_in_folder, may_be_icebergs
from delta_core.snapshot.snapshot import Snapshot


def require_table_directory(root_uri: str) -> None:
    """Refuse a table that is the root of a file system, of a bucket or of a container.

    Raises:
        MaintenanceError: everything there that the table does not name would be deleted.
    """
    if urlsplit(root_uri).path.strip("/"):
        return
    raise MaintenanceError(
        f"{root_uri!r} is not vacuumed",
        cause="it is the root of a file system, bucket or container, where other things lie than a table",
        fix="move the table into a directory of its own",
    )


def require_deletable(snapshot: Snapshot, paths: Iterable[str]) -> None:
    """Refuse a plan that names files no vacuum deletes, such as the log's.

    Raises:
        MaintenanceError: the plan was not made by `plan_vacuum`, or was changed since.
    """
    for_iceberg = may_be_icebergs(snapshot)
    # Few folders hold many files.
    kind_in = cache(
        partial(kind_in_folder, partition_columns=snapshot.partition_columns, for_iceberg=for_iceberg)
    )
    for path in paths:
        folder, _, name = path.rpartition("/")
        kind = kind_in(folder)
        if kind is FileKind.KEPT or (name.startswith(HIDDEN) and kind is not FileKind.STAGING):
            raise MaintenanceError(
                f"the plan would delete {path!r}",
                cause="no vacuum deletes the log, files and directories whose names begin with _ or ., nor "
                "Iceberg's metadata",
                fix="plan again",
            )
