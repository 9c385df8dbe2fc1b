"""What the files of one commit must be, by the protocol and by the table's properties."""

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
        actions: the commit's.
        operation: its name, for messages.
        before: the table's properties; None for one that is created.
        after: those that the same commit sets; None when it sets none that count.

    Raises:
        CommitError: a file is added or removed twice, or both; or one has a deletion vector and no count of
            its rows.
        InvalidTableError: rows go from a table that is append-only, or becomes so in this commit.
    """
    adds = [a for a in actions if isinstance(a, AddFile)]
    if len({a.path for a in adds}) != len(adds):
        raise CommitError("A commit adds the same file twice.")
    removes = [a for a in actions if isinstance(a, RemoveFile)]
    gone = {_identity(r) for r in removes}
    if len(gone) != len(removes):
        raise CommitError("A commit removes the same file twice.")
    both = next((a.path for a in adds if gone and _identity(a) in gone), None)
    if both is not None:
        raise CommitError(
            f"A commit adds and removes the file {both!r}.",
            cause="Its deletion vector is the same in both, so nobody could tell whether the file is live.",
            fix="Add a file again without removing it; with another deletion vector, remove the one before.",
        )
    uncounted = next((a.path for a in adds if a.deletion_vector is not None and not _says_rows(a)), None)
    if uncounted is not None:
        raise CommitError(
            f"The file {uncounted!r} has a deletion vector and does not say how many rows it has.",
            cause="Readers need numRecords in its statistics, deleted rows included.",
            fix="Take the number from the file's footer.",
        )
    if not any(r.data_change for r in removes):
        return
    if before is not None and before.append_only:
        raise InvalidTableError(
            f"The table is append-only, so {operation} cannot take rows away.",
            cause="The table property delta.appendOnly is true.",
            fix="Append instead, or set delta.appendOnly to false first.",
        )
    if after is not None and after.append_only:
        raise InvalidTableError(
            f"The table becomes append-only, so {operation} cannot take rows away.",
            cause="The same commit sets the table property delta.appendOnly to true.",
            fix="Take the rows away first, and set the property in a commit of its own.",
        )


def _says_rows(add: AddFile) -> bool:
    """PROTOCOL.md, "Writer Requirement for Deletion Vectors"."""
    try:
        count = orjson.loads(add.stats or "{}").get("numRecords")
    except (orjson.JSONDecodeError, AttributeError):
        return False
    return type(count) is int and count >= 0


def _identity(file: AddFile | RemoveFile) -> tuple[str, str | None]:
    return file.path, None if file.deletion_vector is None else file.deletion_vector.unique_id
