"""Real operations on a table with deletion vectors, mapped columns, row ids, commit times and a domain.

File A holds the ids 0 to 9 and file B 10 to 19 in partition a, file C 20 to 29 in partition b; row 15 went by
a vector in the last version.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from delta_core import DeltaTable, write_deltalake
from delta_core.actions import AddFile
from delta_core.actions.json_codec import decode_commit
from delta_core.deletion_vectors.reader import deletion_vector_path
from delta_core.dml.definition.columns import add_columns, drop_columns, rename_column
from delta_core.dml.definition.domains import remove_domain_metadata, set_domain_metadata
from delta_core.dml.definition.properties import set_properties
from delta_core.dml.delete import delete_rows
from delta_core.dml.update import update_rows
from delta_core.execution.inline_executor import InlineExecutor
from delta_core.maintenance.apply_rewrite import apply_rewrite
from delta_core.maintenance.compaction.plan import plan_compaction
from delta_core.maintenance.purge.plan import plan_purge
from delta_core.maintenance.restore.apply import apply_restore
from delta_core.maintenance.restore.plan import plan_restore
from delta_core.merge import MergeRequest, merge_rows
from delta_core.merge.clauses import MergeAction, MergeClause, MergeClauses
from delta_core.run import Run
from delta_core.schema.types import STRING, StructField
from delta_core.snapshot.snapshot import Snapshot
from delta_core.transaction.row_ids import DOMAIN, watermark_of
from tests.concurrency.matrix.layouts import Handle
from tests.concurrency.matrix.operation import Interruption
from tests.support.deletion_vectors import deletion_vector_name

PROPERTIES = {
    "delta.enableDeletionVectors": "true",
    "delta.columnMapping.mode": "name",
    "delta.enableRowTracking": "true",
    "delta.enableInCommitTimestamps": "true",
}
BEFORE_THE_DELETION_VECTOR = 4
TEAM = "team"
UPDATE = "update in A"
MERGE = "merge in A"
_UPSERT = MergeRequest(
    on="target.p = source.p AND target.id = source.id",
    clauses=MergeClauses(
        matched=(MergeClause(action=MergeAction.UPDATE, values={"v": "concat(target.v, '!')"}),),
        not_matched=(MergeClause(action=MergeAction.INSERT_ALL),),
    ),
)

_ALONE = InlineExecutor(1)

Attempt = Callable[[Snapshot, Interruption], object]


def rows(ids: Iterable[int], *, partition: str) -> pa.Table:
    """Rows of the table."""
    numbers = list(ids)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "p": pa.array([partition] * len(numbers), pa.string()),
            "v": pa.array([f"v{n}" for n in numbers], pa.string()),
            "note": pa.array(["n"] * len(numbers), pa.string()),
        }
    )


def make(root: Path, level: str) -> None:
    """The table."""
    configuration = {**PROPERTIES, "delta.isolationLevel": level}
    table = DeltaTable.create(
        root, rows([], partition="a").schema, partition_by=["p"], configuration=configuration
    )
    table.alter.set_domain_metadata(TEAM, "{}")
    for first, partition in ((0, "a"), (10, "a"), (20, "b")):
        write_deltalake(table, rows(range(first, first + 10), partition=partition), mode="append")
    assert table.version() == BEFORE_THE_DELETION_VECTOR
    table.delete("id = 15")


def _delete(predicate: str) -> Attempt:
    return lambda snapshot, hook: delete_rows(snapshot, predicate, run=Run(observer=hook))


def _write(ids: Iterable[int], partition: str, **options: Any) -> Attempt:
    data = rows(ids, partition=partition)
    return lambda snapshot, hook: write_deltalake(Handle(snapshot), data, observer=hook, **options)


def _at_once(change: Callable[[Snapshot], object]) -> Attempt:
    """Of what takes a snapshot and commits at once: it is interrupted by the snapshot's age."""

    def run(snapshot: Snapshot, hook: Interruption) -> object:
        hook()
        return change(snapshot)

    return run


def _compact(snapshot: Snapshot, hook: Interruption) -> object:
    plan = plan_compaction(snapshot, predicate="p = 'a'")
    return apply_rewrite(snapshot, plan, run=Run(executor=_ALONE, observer=hook))


def _purge(snapshot: Snapshot, hook: Interruption) -> object:
    return apply_rewrite(snapshot, plan_purge(snapshot), run=Run(executor=_ALONE, observer=hook))


def _restore(snapshot: Snapshot, hook: Interruption) -> object:
    return apply_restore(
        snapshot, plan_restore(snapshot, version=BEFORE_THE_DELETION_VECTOR), run=Run(observer=hook)
    )


OPERATIONS: dict[str, Attempt] = {
    "append": _write([100], "b", mode="append"),
    "delete in A": _delete("p = 'a' AND id < 3"),
    "delete elsewhere in A": _delete("p = 'a' AND id >= 7 AND id < 9"),
    "delete in A, some of them too": _delete("p = 'a' AND id >= 2 AND id < 8"),
    "delete all of A": _delete("p = 'a' AND id < 10"),
    "delete in A and B": _delete("p = 'a' AND id >= 5 AND id < 13"),
    "delete in C": _delete("p = 'b' AND id = 25"),
    "replace in A": _write([4], "a", mode="overwrite", predicate="p = 'a' AND id >= 3 AND id < 6"),
    UPDATE: lambda snapshot, hook: update_rows(
        snapshot, {"v": "concat(v, '!')"}, "p = 'a' AND id < 3", run=Run(observer=hook)
    ),
    MERGE: lambda snapshot, hook: merge_rows(
        snapshot, rows([1, 2, -1], partition="a"), _UPSERT, run=Run(observer=hook)
    ),
    "replace partition b": _write([50], "b", mode="overwrite", partition_overwrite_mode="dynamic"),
    "compaction of a": _compact,
    "purge of B": _purge,
    "restore": _restore,
    "rename a column": _at_once(lambda snapshot: rename_column(snapshot, ["v"], "w")),
    "drop a column": _at_once(lambda snapshot: drop_columns(snapshot, [["note"]])),
    "add a column": _at_once(
        lambda snapshot: add_columns(snapshot, [StructField(name="more", data_type=STRING)])
    ),
    "vectors off": _at_once(
        lambda snapshot: set_properties(snapshot, {"delta.enableDeletionVectors": "false"})
    ),
    "set the domain": _at_once(lambda snapshot: set_domain_metadata(snapshot, TEAM, '{"a":1}')),
    "remove the domain": _at_once(lambda snapshot: remove_domain_metadata(snapshot, TEAM)),
}

BY_DELETION_VECTORS = frozenset(name for name in OPERATIONS if name.startswith("delete "))


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What a table is to its users."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    properties: tuple[tuple[str, str], ...]
    domain: str | None

    @classmethod
    def of(cls, root: Path) -> State:
        """A table's newest version."""
        table = DeltaTable(root)
        domain = table.snapshot.domain(TEAM)
        found = (json.dumps(row, sort_keys=True) for row in table.to_pyarrow_table().to_pylist())
        return cls(
            rows=tuple(sorted(found)),
            columns=tuple(table.snapshot.schema.names),
            properties=tuple(
                sorted(
                    (key, value)
                    for key, value in table.metadata().configuration.items()
                    if "materialized" not in key
                )
            ),
            domain=None if domain is None or domain.removed else domain.configuration,
        )


def row_ids(root: Path) -> dict[int, int]:
    """The id of each row, by the column `id`."""
    found = DeltaTable(root).to_pyarrow_table(row_ids=True).to_pydict()
    return dict(zip(found["id"], found["_row_id"], strict=True))


def faults(root: Path, before: dict[int, int]) -> list[str]:
    """What is wrong with a table whatever was done to it; `before` are its rows' ids once."""
    table = DeltaTable(root)
    given = table.to_pyarrow_table(row_ids=True)
    # Row 4 is the one that is replaced, and comes with an id of its own.
    kept = {number: row_id for number, row_id in before.items() if number != 4}
    return id_faults(table.snapshot, given, kept) + log_faults(root)


def id_faults(snapshot: Snapshot, given: pa.Table, before: Mapping[int, int]) -> list[str]:
    """What is wrong with the ids of rows that were read with them; `before` are those of rows that stay."""
    numbers, ids = given.column("id").to_pylist(), given.column("_row_id").to_pylist()
    wrong = []
    if len(set(ids)) < len(ids):
        wrong.append("two rows have one id")
    domain = snapshot.domain(DOMAIN)
    if domain is None or watermark_of(domain) < max(ids, default=-1):
        wrong.append(f"the watermark {domain} is below an id")
    wrong += [
        f"row {number} had the id {before[number]} and has {row_id}"
        for number, row_id in zip(numbers, ids, strict=True)
        if number in before and before[number] != row_id
    ]
    return wrong


def log_faults(root: Path) -> list[str]:
    """What is wrong with a log: times that do not rise, files that go or come when they cannot."""
    wrong = []
    last = -1
    live: dict[str, str | None] = {}
    deletion_vector_files: set[str | None] = set()
    paths = sorted((root / "_delta_log").glob("*.json"))
    # What was live before the first commit that is left, no commit tells.
    is_whole = paths[:1] == [root / "_delta_log" / f"{0:020d}.json"]
    timed = True
    for number, path in enumerate(paths):
        # Nor does one after a gap, which is left where power failed before deletions were durable.
        is_whole = is_whole and path.stem == f"{number:020d}"
        actions = [json.loads(line) for line in path.read_text().splitlines()]
        for metadata in (a["metaData"] for a in actions if "metaData" in a):
            timed = metadata["configuration"].get("delta.enableInCommitTimestamps") == "true"
        time = actions[0]["commitInfo"]["inCommitTimestamp"] if timed else last + 1
        if time <= last:
            wrong.append(f"{path.name} is of the time {time}, the one before of {last}")
        last = time if timed else -1
        if not is_whole:
            continue
        for remove in (a["remove"] for a in actions if "remove" in a):
            if remove["path"] in deletion_vector_files:
                continue  # A drop of the feature leaves tombstones of the files that vectors were in.
            if live.pop(remove["path"], "nothing") != _deletion_vector(remove):
                wrong.append(f"{path.name} removes {remove['path']} with a vector that is not live")
        for add in (a["add"] for a in actions if "add" in a):
            # A file may be added again as it is, to get its row ids for instance.
            if add["path"] in live and (add["dataChange"] or live[add["path"]] != _deletion_vector(add)):
                wrong.append(f"{path.name} adds {add['path']}, which is live")
            live[add["path"]] = _deletion_vector(add)
            if (add.get("deletionVector") or {}).get("storageType") == "u":
                deletion_vector_files.add(deletion_vector_name(add["deletionVector"]))
    return wrong


def named_files(root: Path) -> set[str]:
    """The files in the table's directory that some commit names: with rows, or with vectors."""
    named = set()
    for path in (root / "_delta_log").glob("*.json"):
        for action in decode_commit(path.read_bytes(), path=path.name):
            if isinstance(action, AddFile):
                named.add(unquote(action.path))
                if action.deletion_vector is not None:
                    dv = deletion_vector_path(action.deletion_vector, root_uri=root.as_uri())
                    named |= {dv} if dv is not None else set()
    return named


def _deletion_vector(file: dict[str, Any]) -> str | None:
    dv = file.get("deletionVector")
    return None if dv is None else f"{dv['storageType']}{dv['pathOrInlineDv']}"
