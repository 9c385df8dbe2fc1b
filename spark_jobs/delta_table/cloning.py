"""`DeltaTable.clone` and its two siblings."""

from __future__ import annotations

from collections.abc import Mapping

import delta_core
from delta_core import clone_table
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage import open_store
from spark_jobs import names
from spark_jobs.delta_table.handle import Handle
from spark_jobs.spark_errors import NamedTableExistsError
from spark_jobs.writer.commits import record_commit


def clone_to(
    handle: Handle,
    target: str,
    *,
    is_shallow: bool,
    replace: bool,
    properties: Mapping[str, str] | None,
    version: int | None = None,
    timestamp_ms: int | None = None,
) -> tuple[str, str | None]:
    """Clone a table to a path or to a name.

    Args:
        handle: the source.
        target: a path or URI, or the name of a table.
        is_shallow: refer to the source's files instead of copying them.
        replace: make a clone that exists equal to the source.
        properties: properties of the clone, set in a commit of its own after the clone.
        version: the source's version; the newest when neither it nor `timestamp_ms` is given.
        timestamp_ms: the time of the source's version.

    Returns:
        The clone's URI, and its name or None.

    Raises:
        NamedTableExistsError: the target exists and is not to be replaced.
        CloneError: the target is a table, and not a clone of this one.
        DeltaError: the errors of `delta_core.clone_table`.
    """
    name = None if "/" in target else names.parse_name(target)
    claimed = False
    if name is None or name.path is not None:
        uri, shown = target if name is None else str(name.path), None
    else:
        address = names.find(handle.spark, name)
        if address is None:
            address = names.claim(handle.spark, target, handle.snapshot().schema)
            claimed = True
        uri, shown = address.uri, target
    if not replace and not claimed and Snapshot.exists(open_store(uri)):
        raise NamedTableExistsError(
            f"The table {target} already exists.", fix="Pass replace=True, or choose another target."
        )
    try:
        clone_table(
            handle.uri,
            uri,
            shallow=is_shallow,
            version=version,
            timestamp_ms=timestamp_ms,
            storage_options=handle.storage_options,
            allowed_roots=handle.allowed_roots,
            executor=handle.executor(),
            clock=handle.clock,
        )
    except BaseException:
        if claimed:
            names.unregister(handle.spark, target)
        raise
    clone = delta_core.DeltaTable(uri, storage_options=handle.storage_options)
    if properties:
        clone.alter.set_properties(dict(properties))
    record_commit(uri, clone.version())
    return uri, shown
