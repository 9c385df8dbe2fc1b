"""The two clients: this library and the `deltalake` package, with the same operations."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq

from delta_core import DeltaTable, clone_table, convert_to_deltalake, write_deltalake
from delta_core.errors import CommitStateUnknownError
from delta_core.schema.types import STRING, StructField
from delta_core.storage.open import open_store
from delta_core.transaction.commit_result import Committed
from tests.concurrency.ambiguity.cells import BEGINNING, BY_DELETION_VECTORS, Operation
from tests.concurrency.ambiguity.judge import EXPECTED, ROWS_BEFORE, Expected, Said
from tests.support.emulators.places import Place

HANG_TIMEOUT = "3s"
"""How long a client waits for an answer where one never comes; long enough for a busy machine's answers."""


def rows(*values: int) -> pa.Table:
    """Some rows."""
    return pa.table({"id": pa.array(values, pa.int64())})


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a call came to; the transaction's id where the client tells it."""

    said: Said
    error: str = ""
    txn_id: str | None = None


class Client(Protocol):
    """Someone who writes."""

    def options(self, place: Place, endpoint: Mapping[str, str], *, short: bool) -> dict[str, str]:
        """Its options for a place, whose servers are at other addresses; `short` for a short time-out."""
        ...

    def expected(self, operation: Operation) -> Expected:
        """What the operation should give."""
        ...

    def run(self, operation: Operation, uri: str, options: dict[str, str]) -> Answer:
        """Call it."""
        ...


class Ours:
    """This library."""

    def options(self, place: Place, endpoint: Mapping[str, str], *, short: bool) -> dict[str, str]:
        found = {**place.options, **endpoint}
        if short and place.name == "hdfs":
            found["timeout_seconds"] = HANG_TIMEOUT.removesuffix("s")
        elif short and place.name != "local":
            found["timeout"] = HANG_TIMEOUT
        return found

    def expected(self, operation: Operation) -> Expected:
        return EXPECTED[operation]

    def run(self, operation: Operation, uri: str, options: dict[str, str]) -> Answer:
        try:
            return Answer(said=Said.DONE, txn_id=self._call(operation, uri, options))
        except CommitStateUnknownError as error:
            return Answer(said=Said.UNKNOWN, error=str(error))
        except Exception as error:
            return Answer(said=Said.FAILED, error=f"{type(error).__name__}: {error}")

    def _call(self, operation: Operation, uri: str, options: dict[str, str]) -> str | None:
        if operation in (Operation.APPEND, Operation.OVERWRITE, Operation.REPLACE_WHERE):
            replacing = operation is Operation.REPLACE_WHERE
            committed = write_deltalake(
                uri,
                rows(7, 8) if replacing else rows(5),
                mode="append" if operation is Operation.APPEND else "overwrite",
                predicate="id >= 4" if replacing else None,
                storage_options=options,
            )
            return _txn_id(committed)
        if operation is Operation.CLONE:
            return _txn_id(clone_table(source_of(uri), uri, storage_options=options).committed)
        if operation is Operation.CONVERT:
            return _txn_id(convert_to_deltalake(uri, storage_options=options))
        table = DeltaTable(uri, storage_options=options)
        if operation is Operation.DELETE:
            return _txn_id(table.delete("id = 3").committed)
        if operation is Operation.UPDATE:
            return _txn_id(table.update({"id": "id + 10"}, "id IN (2, 3)").committed)
        if operation is Operation.MERGE:
            merger = table.merge(rows(2, 9), "target.id = source.id")
            merger = merger.when_matched_update({"id": "target.id + 10"}).when_not_matched_insert_all()
            return _txn_id(merger.execute().committed)
        if operation is Operation.RESTORE:
            table.restore(0)
        elif operation is Operation.OPTIMIZE:
            table.optimize.compact()
        else:
            return table.alter.add_columns([StructField(name="note", data_type=STRING)]).txn_id
        return None


class Peer:
    """The `deltalake` package. It has no word for *I do not know*: whatever it raises is a failure."""

    def options(self, place: Place, endpoint: Mapping[str, str], *, short: bool) -> dict[str, str]:
        found = {**place.options, **endpoint}
        if place.name == "azure":
            found = {
                "azure_storage_account_name": found["account_name"],
                "azure_storage_account_key": found["account_key"],
                "azure_storage_endpoint": found["endpoint"],
                "azure_allow_http": "true",
            }
        return {**found, "timeout": HANG_TIMEOUT} if short else found

    def expected(self, operation: Operation) -> Expected:
        # It deletes where the other replaces.
        return Expected(ids=(1, 2, 3)) if operation is Operation.REPLACE_WHERE else EXPECTED[operation]

    def run(self, operation: Operation, uri: str, options: dict[str, str]) -> Answer:
        try:
            self._call(operation, uri, options)
        except Exception as error:
            return Answer(said=Said.FAILED, error=f"{type(error).__name__}: {error}")
        return Answer(said=Said.DONE)

    def _call(self, operation: Operation, uri: str, options: dict[str, str]) -> None:
        if operation is Operation.APPEND:
            deltalake.write_deltalake(uri, rows(5), mode="append", storage_options=options)
            return
        if operation is Operation.OVERWRITE:
            deltalake.write_deltalake(uri, rows(5), mode="overwrite", storage_options=options)
            return
        table = deltalake.DeltaTable(uri, storage_options=options)
        if operation is Operation.REPLACE_WHERE:
            table.delete("id >= 4")
        elif operation is Operation.RESTORE:
            _restore_in_a_process(uri, options)
        elif operation is Operation.OPTIMIZE:
            table.optimize.compact()
        else:
            table.alter.add_columns([deltalake.Field("note", deltalake.schema.PrimitiveType("string"))])


_RESTORE = """
import json, sys, deltalake
uri, options = json.load(sys.stdin)
try:
    deltalake.DeltaTable(uri, storage_options=options).restore(0)
except Exception as error:
    sys.exit(f"{type(error).__name__}: {error}")
"""


def _restore_in_a_process(uri: str, options: dict[str, str]) -> None:
    """It keeps the interpreter to itself while it waits for answers, which a proxy in here could not give."""
    done = subprocess.run(
        [sys.executable, "-c", _RESTORE],
        input=json.dumps([uri, options]),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())


OURS: Client = Ours()
PEER: Client = Peer()

PEER_OPERATIONS = frozenset(Operation) - BEGINNING - BY_DELETION_VECTORS
"""What the `deltalake` package does, too."""

PEER_READS = ("local", "s3", "azure")
"""Where the `deltalake` package reads what was written; it writes there, too."""


def make_start(operation: Operation, uri: str, options: Mapping[str, str]) -> None:
    """Two versions of two rows each; or what a table is to be made of, a source or files."""
    halves = ROWS_BEFORE[:2], ROWS_BEFORE[2:]
    if operation is Operation.CONVERT:
        store = open_store(uri, storage_options=options)
        for number, half in enumerate(halves):
            sink = io.BytesIO()
            pq.write_table(rows(*half), sink)
            store.put_if_absent(f"part-{number}.parquet", sink.getvalue())
        return
    table = source_of(uri) if operation is Operation.CLONE else uri
    by_deletion_vectors = (
        {"delta.enableDeletionVectors": "true"} if operation in BY_DELETION_VECTORS else None
    )
    write_deltalake(table, rows(*halves[0]), storage_options=options, configuration=by_deletion_vectors)
    write_deltalake(table, rows(*halves[1]), mode="append", storage_options=options)


def source_of(uri: str) -> str:
    """What a table is a clone of; its name is not part of the other's, nor the other way round."""
    base, _, name = uri.rpartition("/")
    return f"{base}/source-{name.rpartition('table-')[2]}"


def _txn_id(committed: Committed | None) -> str | None:
    return None if committed is None else committed.txn_id


def read_by_peer(place: Place, uri: str) -> list[int]:
    """The live rows, without the proxy."""
    options = PEER.options(place, {}, short=False)
    table = deltalake.DeltaTable(uri, storage_options=options)
    # Its Arrow data sets know no deletion vectors; its queries do.
    found = deltalake.QueryBuilder().register("t", table).execute("SELECT id FROM t")
    return sorted(pa.table(found.read_all())["id"].to_pylist())
