"""Checks the files of one commit against the protocol and the table's properties."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from delta_core.actions import Action, AddFile, RemoveFile
from delta_core.errors import CommitError, InvalidTableError
from delta_core.table_features.table_properties import TableProperties


def require_consistent_files(
    actions: Sequence[Action],
    *,
    operation: str,
    before: TableProperties | None,
    after: TableProperties | None,
) -> None:
    """Refuse a commit whose files contradict each other or the table (PROTOCOL.md, "Append-only Tables").

    Args:
        actions: the actions of the commit.
        operation: the name of the operation, for messages.
        before: the table's properties before the commit; None for a table that is created.
        after: the properties that the commit sets; None when it sets none that apply to it.

    Raises:
        CommitError: the commit adds a file twice, removes it twice, or adds and removes it; or a file has a
            deletion vector and no row count.
        InvalidTableError: rows are removed from a table that is append-only, or that this commit makes so.
    """
    adds = [a for a in actions if isinstance(a, AddFile)]
    if len({a.path for a in adds}) != len(adds):
        raise CommitError("The commit adds the same file twice.")
    removes = [a for a in actions if isinstance(a, RemoveFile)]
    removed = {_identity(r) for r in removes}
    if len(removed) != len(removes):
        raise CommitError("The commit removes the same file twice.")
    both = next((a.path for a in adds if removed and _identity(a) in removed), None)
    if both is not None:
        raise CommitError(
            f"The commit adds and removes the file {both!r}.",
            cause="Both actions have the same deletion vector, so readers cannot decide whether the file is "
            "live.",
            fix="Add the file again without a remove, or give the add another deletion vector.",
        )
    uncounted = next((a.path for a in adds if a.deletion_vector is not None and not _has_row_count(a)), None)
    if uncounted is not None:
        raise CommitError(
            f"The file {uncounted!r} has a deletion vector but no row count.",
            cause="Readers need numRecords in its statistics, with the deleted rows included.",
            fix="Set numRecords to the row count in the file's footer.",
        )
    if not any(r.data_change for r in removes):
        return
    if before is not None and before.append_only:
        raise InvalidTableError(
            f"The table is append-only, so {operation} cannot remove rows.",
            cause="The table property delta.appendOnly is true.",
            fix="Append instead, or set delta.appendOnly to false first.",
        )
    if after is not None and after.append_only:
        raise InvalidTableError(
            f"The table becomes append-only, so {operation} cannot remove rows.",
            cause="The same commit sets the table property delta.appendOnly to true.",
            fix="Remove the rows first, and set the property in a separate commit.",
        )


def _has_row_count(add: AddFile) -> bool:
    """Whether the statistics have `numRecords` (PROTOCOL.md, "Writer Requirement for Deletion Vectors")."""
    try:
        count = orjson.loads(add.stats or "{}").get("numRecords")
    except (orjson.JSONDecodeError, AttributeError):
        return False
    return type(count) is int and count >= 0


def _identity(file: AddFile | RemoveFile) -> tuple[str, str | None]:
    return file.path, None if file.deletion_vector is None else file.deletion_vector.unique_id
