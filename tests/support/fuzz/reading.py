"""A table read whole, in every way that readers have, each way on its own: its answer or its error."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Container
from pathlib import Path
from typing import Any

import pyarrow as pa

from delta_core import DeltaTable
from delta_core.actions import DeletionVectorDescriptor
from delta_core.deletion_vectors.reader import read_deletion_vector
from delta_core.errors import DeltaError, DeltaWarning
from delta_core.scan.scan import Scan
from delta_core.snapshot.history import history
from tests.support.fuzz.slow_reader import Answer, file_row, row_strings, tombstones_of

PREDICATE = "p = 'a' AND id < 20"
_ALL_TIME = -(2**63)


class Reading:
    """What came of it.

    Attributes:
        values: the answers, by way of reading.
        errors: the errors, by way of reading.
        warned: the warnings that were given.
    """

    def __init__(self) -> None:
        self.values: Answer = {}
        self.errors: dict[str, BaseException] = {}
        self.warned: list[warnings.WarningMessage] = []

    @property
    def wrong_warnings(self) -> list[str]:
        """Warnings that are nobody's but a fault's."""
        return [
            f"{one.category.__name__}: {one.message}"
            for one in self.warned
            if not issubclass(one.category, DeltaWarning)
        ]

    @property
    def faults(self) -> dict[str, BaseException]:
        """The errors that are no typed ones."""
        return {way: error for way, error in self.errors.items() if not isinstance(error, DeltaError)}


def read_everything(root: Path, *, without: Container[str] = ()) -> Reading:
    """Open the latest version and read all there is; every exception is kept, none is raised.

    Args:
        root: the table.
        without: ways to leave out.
    """
    found = Reading()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        table = _attempt(found, "open", lambda: DeltaTable(str(root)))
        if table is not None:
            found.values.pop("open")
            for way, read in WAYS.items():
                if way in without:
                    continue
                _attempt(found, way, lambda read=read: read(table))
    found.warned = list(warned)
    return found


def _attempt(found: Reading, way: str, read: Callable[[], Any]) -> Any:
    try:
        value = found.values[way] = read()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        found.errors[way] = error
        return None
    return value


def _protocol(table: DeltaTable) -> list[Any]:
    protocol = table.protocol()
    return [
        protocol.min_reader_version,
        protocol.min_writer_version,
        None if protocol.reader_features is None else sorted(protocol.reader_features),
        None if protocol.writer_features is None else sorted(protocol.writer_features),
    ]


def _metadata(table: DeltaTable) -> list[Any]:
    metadata = table.metadata()
    configuration = sorted([list(pair) for pair in metadata.configuration.items()], key=repr)
    return [
        metadata.id,
        metadata.name,
        metadata.schema_string,
        list(metadata.partition_columns),
        configuration,
    ]


def _files(table: DeltaTable) -> list[Any]:
    return sorted((file_row(_as_json(row)) for row in table.snapshot.files.to_table().to_pylist()), key=repr)


def _as_json(row: dict[str, Any]) -> dict[str, Any]:
    dv = row["deletion_vector"]
    return {
        "path": row["path"],
        "partitionValues": row["partition_values"],
        "size": row["size_bytes"],
        "modificationTime": row["modification_time_ms"],
        "tags": row["tags"],
        "deletionVector": None
        if dv is None
        else {
            "storageType": dv["storage_type"],
            "pathOrInlineDv": dv["path_or_inline_dv"],
            "offset": dv["offset"],
            "sizeInBytes": dv["size_in_bytes"],
            "cardinality": dv["cardinality"],
        },
    }


def _tombstones(table: DeltaTable) -> list[Any]:
    rows = table.snapshot.tombstones(since_ms=_ALL_TIME).to_pylist()
    found = [_as_json({**row, "modification_time_ms": 0, "tags": None}) for row in rows]
    times = [row["deletion_timestamp_ms"] for row in rows]
    return tombstones_of(
        {**fields, "deletionTimestamp": time} for fields, time in zip(found, times, strict=True)
    )


def _deletion_vectors(table: DeltaTable) -> list[Any]:
    found = []
    for row in table.snapshot.files.to_table(["path", "deletion_vector"]).to_pylist():
        if row["deletion_vector"] is not None:
            dv = DeletionVectorDescriptor(**row["deletion_vector"])
            rows = read_deletion_vector(table.snapshot.store, dv, num_rows=100_000)
            found.append([row["path"], len(rows), sum(rows.tolist())])
    return sorted(found)


def _rows(table: DeltaTable) -> pa.Array:
    return row_strings(table.to_pyarrow_table())


def _selected_files(table: DeltaTable) -> list[str]:
    return sorted(Scan(table.snapshot, predicate=PREDICATE).files(["path"]).column("path").to_pylist())


def _selected_rows(table: DeltaTable) -> pa.Array:
    return row_strings(table.to_pyarrow_table(filters=PREDICATE))


def _history(table: DeltaTable) -> list[Any]:
    return [[one.version, one.timestamp_ms, one.commit_info.operation] for one in history(table.snapshot)]


def _changes(table: DeltaTable) -> pa.Array:
    first = min((one.version for one in history(table.snapshot)), default=0)
    return row_strings(table.load_cdf(starting_version=first).read_all())


WAYS: dict[str, Callable[[DeltaTable], Any]] = {
    "version": lambda table: table.version(),
    "protocol": _protocol,
    "metadata": _metadata,
    "schema": lambda table: str(table.snapshot.schema),
    "transactions": lambda table: {key: one.version for key, one in table.snapshot.transactions.items()},
    "files": _files,
    "selected files": _selected_files,
    "statistics": lambda table: table.get_add_actions(flatten=True).num_rows,
    "domains": lambda table: {key: one.configuration for key, one in table.snapshot.domain_metadata.items()},
    "tombstones": _tombstones,
    "vectors": _deletion_vectors,
    "rows": _rows,
    "selected rows": _selected_rows,
    "history": _history,
    "changes": _changes,
}

DEAR_WAYS = ("statistics", "selected rows", "changes")
"""Each takes as long as all the others together, apart from the rows."""
