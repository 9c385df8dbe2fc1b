"""Every call of the public face, with arguments that are right; tests put wrong ones in their places.

The calls are found in the classes, so that a new one is walked without being listed here: only what its
required parameters are is said, by their names.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from types import FunctionType, GeneratorType
from typing import Any

import numpy as np
import pyarrow as pa

import delta_core
from delta_core import (
    CommitProperties,
    Committed,
    DeltaTable,
    GroupCommit,
    IdentityGenerator,
    Scan,
    Snapshot,
    Transaction,
    deltalake,
    write_deltalake,
)
from delta_core.deltalake.alterer import TableAlterer as TheirAlterer
from delta_core.deltalake.features import TableFeatures
from delta_core.deltalake.merger import TableMerger as TheirMerger
from delta_core.deltalake.optimizer import TableOptimizer as TheirOptimizer
from delta_core.deltalake.schema import Field
from delta_core.log.listing import list_log
from delta_core.merge import TableMerger
from delta_core.table import TableAlterer, TableOptimizer
from delta_core.table.conversions import TableConversions
from delta_core.table.following import TableFollowing
from delta_core.table_features.feature import WriterKind

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": ["a", "b", "c"]})

_FUNCTIONS = ("write_deltalake", "convert_to_deltalake", "clone_table", "define_column")
_MADE = (CommitProperties, IdentityGenerator)
_ENDLESS = {"follow.wait"}
_RIGHT: Mapping[str, Any] = {
    "cluster_by.columns": ["id"],
    "columns": ["id"],
    "column": "name",
    "comment": "c",
    "configuration": "{}",
    "constraints": {"positive": "id > 0"},
    "data": ROWS,
    "data_type": pa.int64(),
    "default": "1",
    "description": "d",
    "domain": "mine",
    "commits": [],
    "committed": Committed(version=1, attempts=1),
    "keys": ["mine"],
    "operation": "MINE",
    "operation_parameters": {},
    "writer_kind": WriterKind.COMMIT,
    "name": "id",
    "position": delta_core.First(),
    "properties": {"mine": "1"},
    "schema": ROWS.schema,
    "since_version": 0,
    "updates": {"name": "'z'"},
    "add_columns.columns": pa.field("new", pa.int64()),
    "add_feature.name": "vacuumProtocolCheck",
    "drop_feature.name": "vacuumProtocolCheck",
    "rename_column.name": "other",
    "set_name.name": "n",
    "create.table_uri": "created",
    "clone_table.target_uri": "cloned",
    "clone_table.source_uri": "t",
    "write_deltalake.table_or_uri": "t",
    "table_uri": "t",
    "convert_to_deltalake.uri": "files",
    "append.data": ROWS,
    "add_feature.feature": TableFeatures.AppendOnly,
    "add_columns.fields": Field("new", "long"),
    "drop_column_not_null.column_name": "id",
    "set_table_properties.properties": {"mine": "1"},
    "set_column_metadata.metadata": {"comment": "c"},
    "transaction_version.app_id": "app",
    "load_as_version.version": 0,
    "restore.target": 0,
    "compact_logs.starting_version": 0,
    "compact_logs.ending_version": 1,
    "create_write_transaction.actions": [],
    "create_write_transaction.mode": "append",
    "merge.source": ROWS,
    "merge.predicate": "target.id = source.id",
    "execute.sql": "SELECT 1",
    "register.table_name": "t",
}


_PLACES = ("clone_table.source_uri", "clone_table.target_uri", "convert_to_deltalake.uri")


class Strange:
    """Nothing can be said of it."""

    def __str__(self) -> str:
        raise ValueError("no text")

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        raise ValueError("nothing is equal")

    __hash__ = None  # type: ignore[assignment]


class Locked(Exception):  # noqa: N818 - what it holds is what it is about
    """Cannot be pickled."""

    def __init__(self, text: str = "") -> None:
        super().__init__(text)
        self.lock = threading.Lock()


HOSTILE: Mapping[str, Any] = {
    "None": None,
    "bytes": b"x",
    "huge": 10**30,
    "minus": -1,
    "nan": float("nan"),
    "infinite": float("inf"),
    "nested": [[["x"]]],
    "path": Path("x"),
    "decimal": Decimal("1.5"),
    "strange": Strange(),
    "strange_list": [Strange()],
    "strange_map": {"x": Strange()},
    "object": object(),
    "type": int,
    "true": True,
    "empty": "",
    "nul": "a\0b",
    "surrogate": "\udcff",
    "numpy_int": np.int64(1),
    "numpy_nan": np.float64("nan"),
    "numpy_flag": np.bool_(True),
    "numpy_array": np.array([1, 2]),
    "map": {1: 2},
    "lambda": lambda *args, **kwargs: 1 / 0,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call.

    Attributes:
        name: as a user writes it.
        call: makes it in a directory that `prepared` made, with the named arguments besides the right ones.
        parameters: what it takes by name.
    """

    name: str
    call: Callable[..., Any]
    parameters: tuple[str, ...]

    def __call__(self, place: Path, /, **arguments: Any) -> None:
        """Make the call; what it returns is read to its end."""
        used(self.call(place, **arguments))


def prepared(place: Path) -> Path:
    """A directory with a table of several small files, and one of Parquet files alone."""
    for start in (0, 10):
        rows = ROWS.set_column(0, "id", pa.array([start + 1, start + 2, start + 3]))
        write_deltalake(place / "t", rows, mode="append")
    table = DeltaTable(place / "t")
    table.alter.set_properties({"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"})
    table.delete("id = 11")
    (place / "files").mkdir()
    pa.parquet.write_table(ROWS, place / "files" / "a.parquet")
    return place


def calls() -> Iterator[Call]:
    """Every call."""
    for name in _FUNCTIONS:
        yield _of_function(name, getattr(delta_core, name))
    for made in _MADE:
        yield _of_function(made.__name__, made, skip=("self",))
    yield _of_function(
        "Scan", lambda place, **given: Scan(DeltaTable(place / "t").snapshot, **given), of=Scan
    )
    yield _of_function(
        "GroupCommit", lambda place, **given: GroupCommit(place / "t", **given), of=GroupCommit
    )
    yield _of_function("DeltaTable", lambda place, **given: DeltaTable(place / "t", **given), of=DeltaTable)
    yield from _methods(DeltaTable, lambda place: DeltaTable(place / "t"))
    yield from _methods(TableConversions, lambda place: DeltaTable(place / "t"))
    yield from _methods(TableFollowing, lambda place: DeltaTable(place / "t"))
    yield from _methods(TableOptimizer, lambda place: DeltaTable(place / "t").optimize)
    yield from _methods(TableAlterer, lambda place: DeltaTable(place / "t").alter)
    yield from _methods(TableMerger, _merger)
    yield from _methods(Scan, lambda place: Scan(_snapshot(place)))
    yield from _methods(Snapshot, _snapshot)
    yield _of_function("Transaction.begin", Transaction.begin)
    yield _of_function("Transaction.create", Transaction.create)
    yield from _methods(GroupCommit, lambda place: GroupCommit(place / "t"))
    yield from _compatible()


def _compatible() -> Iterator[Call]:
    """The calls of `delta_core.deltalake`."""
    for name in ("write_deltalake", "convert_to_deltalake"):
        yield replace(_of_function(name, getattr(deltalake, name)), name=f"deltalake.{name}")
    for owner, opened in (
        (deltalake.DeltaTable, lambda place: deltalake.DeltaTable(place / "t")),
        (TheirAlterer, lambda place: deltalake.DeltaTable(place / "t").alter),
        (
            TheirMerger,
            lambda place: deltalake.DeltaTable(place / "t").merge(ROWS, "target.id = source.id"),
        ),
        (TheirOptimizer, lambda place: deltalake.DeltaTable(place / "t").optimize),
        (deltalake.QueryBuilder, lambda place: deltalake.QueryBuilder()),
    ):
        for call in _methods(owner, opened):
            yield replace(call, name=f"deltalake.{call.name}")


def _merger(place: Path) -> TableMerger:
    return DeltaTable(place / "t").merge(ROWS, "target.id = source.id")


def _snapshot(place: Path) -> Snapshot:
    return DeltaTable(place / "t").snapshot


def used(result: Any) -> None:
    """Read what a call returned to its end, and end what it began."""
    if isinstance(result, GeneratorType | pa.RecordBatchReader):
        for _ in result:
            pass
    elif isinstance(result, GroupCommit):
        result.append(ROWS).result(timeout=600)
        result.close()
    elif hasattr(result, "result") and hasattr(result, "add_done_callback"):
        result.result(timeout=600)


def _of_function(name: str, function: Any, *, of: type | None = None, skip: tuple[str, ...] = ()) -> Call:
    parameters = list(inspect.signature(of or function).parameters.values())
    if of is not None:
        # The first one is the table, which the call itself opens.
        parameters = parameters[1:]

    def call(place: Path, /, **given: Any) -> Any:
        if of is not None:
            return function(place, **given)
        right = _right(name, parameters, place) | given
        if name == "write_deltalake":
            right.setdefault("mode", "append")
        return function(**right)

    return Call(
        name=name, call=call, parameters=tuple(one.name for one in parameters if one.name not in skip)
    )


def _methods(owner: type, opened: Callable[[Path], Any]) -> Iterator[Call]:
    for name, member in vars(owner).items():
        if name.startswith("_") or not isinstance(member, FunctionType | classmethod | staticmethod):
            continue
        is_method = isinstance(member, FunctionType)
        found: Callable[..., Any] = getattr(owner, name)
        parameters = list(inspect.signature(found).parameters.values())[1 if is_method else 0 :]
        yield Call(
            name=f"{owner.__name__}.{name}",
            call=partial(_call_method, opened if is_method else partial(_class, owner), name, parameters),
            parameters=tuple(one.name for one in parameters if f"{name}.{one.name}" not in _ENDLESS),
        )


def _class(owner: type, place: Path) -> type:
    """What class methods are called on."""
    return owner


def _call_method(
    opened: Callable[[Path], Any],
    method: str,
    parameters: list[inspect.Parameter],
    place: Path,
    /,
    **given: Any,
) -> Any:
    right = _right(method, parameters, place) | given
    holder = opened(place)
    try:
        return getattr(holder, method)(**right)
    finally:
        if isinstance(holder, GroupCommit):
            holder.close()


def _right(name: str, parameters: list[inspect.Parameter], place: Path) -> dict[str, Any]:
    """Right values of the parameters that must be given."""
    found = {}
    for one in parameters:
        if one.default is not inspect.Parameter.empty and f"{name}.{one.name}" != "update.updates":
            continue
        value = _RIGHT.get(f"{name}.{one.name}", _RIGHT.get(one.name))
        if one.name in ("table_uri", "table_or_uri") or f"{name}.{one.name}" in _PLACES:
            value = place / value
        elif one.name == "snapshot":
            value = _snapshot(place)
        elif one.name == "delta_table":
            value = DeltaTable(place / "t")
        elif one.name == "store":
            value = _snapshot(place).store
        elif one.name == "listing":
            value = list_log(_snapshot(place).store)
        assert value is not None, f"say in hostile_calls.py what is right for {one.name} of {name}"
        found[one.name] = value
    return found
