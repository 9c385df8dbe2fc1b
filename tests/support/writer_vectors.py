"""Writer vectors: operations on a table, and what its log and its rows must be after each.

`python -m tests.support.writer_vectors` writes tests/golden/writer-vectors/*.json; the format is in
docs/writer-vectors.md. Names that a writer draws, sizes and times are replaced, so the same inputs give the
same files.
"""

from __future__ import annotations

import datetime as dt
import decimal
import json
import math
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import DeltaError, UnsupportedTableFeatureError
from delta_core.maintenance.rewriting.parity import TAG
from delta_core.schema.arrow import to_arrow
from delta_core.schema.json import schema_from_json
from delta_core.schema.types import StructType
from tests.support.repository import ROOT
from tests.support.writer_vector_files import columns_of
from tests.support.writer_vector_inputs import INPUTS, Json

FOLDER = ROOT / "tests" / "golden" / "writer-vectors"
FORMAT_VERSION = 1

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_ORDER = ("commitInfo", "protocol", "metaData", "domainMetadata", "txn", "remove", "add", "cdc")
_MAPS = ("configuration", "options", "partitionValues", "tags")
_PRESERVED = "delta.rowTracking.preserved"
_DRAWN = ("size", "modificationTime", "deletionTimestamp", "createdTime", "extendedFileMetadata")


class NotOpenError(Exception):
    """The library does not have an operation of the vector, or does not write its feature."""


def replay(name: str, operations: Sequence[Json]) -> Json:
    """Do the operations on a new table.

    Returns:
        The vector.

    Raises:
        NotOpenError: see there.
    """
    with tempfile.TemporaryDirectory(prefix="deltaward-vector-") as scratch:
        return replay_at(Path(scratch) / "table", name, operations)


def replay_at(path: Path, name: str, operations: Sequence[Json]) -> Json:
    """As `replay`, in a folder that stays."""
    names = Names()
    steps = []
    version = -1
    for operation in operations:
        try:
            _run(path, operation)
        except UnsupportedTableFeatureError as error:
            raise NotOpenError(f"{name}: {error}") from error
        table = DeltaTable(path)
        known = names.files
        commits = [_actions(path, at, names) for at in range(version + 1, table.version() + 1)]
        files = [one for one in names.files.items() if one[1] not in known.values()]
        version = table.version()
        steps.append({"operation": operation, "commits": commits, "rows": _rows_of(table)})
        if files:
            steps[-1]["files"] = _columns_of(path, files, names)
        if operation["do"] == "checkpoint":
            steps[-1]["checkpoint"] = _checkpoint_of(path, version, names)
        if commits and _records_changes(path, version):
            changes = table.load_cdf(version, version).read_all()
            steps[-1]["changes"] = _json_rows(changes.drop_columns(["_commit_timestamp"]))
    return {"format": FORMAT_VERSION, "name": name, "steps": steps}


def _records_changes(path: Path, version: int) -> bool:
    key = "delta.enableChangeDataFeed"
    return DeltaTable(path, version).metadata().configuration.get(key) == "true"


# ------------------------------------------------------------ operations


def _run(path: Path, operation: Json) -> None:
    arguments = {key: value for key, value in operation.items() if key not in ("do", "refused")}
    if operation.get("refused"):
        try:
            _VERBS[operation["do"]](DeltaTable(path), **arguments)
        except DeltaError:
            return
        raise AssertionError(f"not refused: {operation}")
    if operation["do"] == "create":
        schema = schema_from_json(json.dumps(arguments["schema"]))
        DeltaTable.create(
            path,
            schema,
            partition_by=arguments["partitionBy"],
            configuration=arguments["properties"],
            cluster_by=arguments.get("clusterBy"),
        )
        return
    verb = _VERBS[operation["do"]]
    try:
        verb(DeltaTable(path), **arguments)
    except AttributeError as error:
        raise NotOpenError(f"{operation['do']}: {error}") from error


def _append(table: DeltaTable, rows: list[Json]) -> None:
    write_deltalake(table, from_json(table.snapshot.schema, rows), mode="append")


def _overwrite(table: DeltaTable, rows: list[Json], where: str | None = None) -> None:
    write_deltalake(table, from_json(table.snapshot.schema, rows), mode="overwrite", predicate=where)


def _overwrite_partitions(table: DeltaTable, rows: list[Json]) -> None:
    data = from_json(table.snapshot.schema, rows)
    write_deltalake(table, data, mode="overwrite", partition_overwrite_mode="dynamic")


def _update(table: Any, where: str, **arguments: Any) -> None:
    table.update(arguments["set"], where)


def _change_type(table: DeltaTable, column: str, **arguments: Any) -> None:
    of = {
        "type": "struct",
        "fields": [{"name": "c", "type": arguments["type"], "nullable": True, "metadata": {}}],
    }
    table.alter.change_type(column, schema_from_json(json.dumps(of)).fields[0].data_type)


_VERBS: Mapping[str, Callable[..., Any]] = {
    "append": _append,
    "overwrite": _overwrite,
    "overwritePartitions": _overwrite_partitions,
    "delete": lambda table, where: table.delete(where),
    "update": _update,
    "compact": lambda table: table.optimize.compact(),
    "cluster": lambda table: table.optimize.cluster(),
    "clusterBy": lambda table, columns: table.alter.cluster_by(columns),
    "purge": lambda table: table.optimize.purge(),
    "restore": lambda table, version: table.restore(version),
    "vacuum": lambda table: table.vacuum(dry_run=False),
    "checkpoint": lambda table: table.create_checkpoint(),
    "set": lambda table, properties: table.alter.set_properties(properties),
    "addConstraint": lambda table, name, expression: table.alter.add_constraint({name: expression}),
    "dropConstraint": lambda table, name: table.alter.drop_constraint(name),
    "setDefault": lambda table, column, expression: table.alter.set_default(column, expression),
    "renameColumn": lambda table, column, name: table.alter.rename_column(column, name),
    "dropColumn": lambda table, column: table.alter.drop_columns(column),
    "changeType": _change_type,
    "dropFeature": lambda table, feature: table.alter.drop_feature(feature),
    "setDomain": lambda table, domain, configuration: table.alter.set_domain_metadata(domain, configuration),
    "removeDomain": lambda table, domain: table.alter.remove_domain_metadata(domain),
}


# ------------------------------------------------------------ actions


class Names:
    """What a writer draws, by the order in which it comes: files, and other ids."""

    def __init__(self) -> None:
        self._files: dict[str, str] = {}
        self._deletion_vector_files: dict[str, str] = {}
        self._ids: dict[str, str] = {}

    def file(self, path: str) -> str:
        """The name of a file with rows, or with deletion vectors."""
        names = self._deletion_vector_files if path.endswith(".bin") else self._files
        kind = "vectors" if names is self._deletion_vector_files else "file"
        return names.setdefault(path, f"<{kind}-{len(names) + 1}>")

    @property
    def files(self) -> dict[str, str]:
        """The names of data files so far, by their paths in the log."""
        return dict(self._files)

    def known(self, path: str) -> str:
        """The name that a data file has already; empty for a new one."""
        return self._files.get(path, "")

    def ids_in(self, value: Any) -> Any:
        """The value with every id in it named."""
        text = _UUID.sub(
            lambda found: self._ids.setdefault(found[0], f"<id-{len(self._ids) + 1}>"), json.dumps(value)
        )
        return json.loads(text)


def _actions(path: Path, version: int, names: Names) -> list[Json]:
    lines = (path / "_delta_log" / f"{version:020d}.json").read_text().splitlines()
    found = sorted(
        (json.loads(line) for line in lines if line), key=lambda one: _ORDER.index(next(iter(one)))
    )
    files = [one for one in found if next(iter(one)) in ("add", "remove", "cdc")]
    others = [one for one in found if one not in files]
    # The schema comes before the statistics, so it names the columns.
    named = [_named(one, names) for one in others]
    by_content = sorted((_named(one, names) for one in files), key=lambda one: _content(one, names))
    for one in by_content:
        ((kind, fields),) = one.items()
        one[kind] = {"path": names.file(fields["path"]), **{k: v for k, v in fields.items() if k != "path"}}
    return [one for one in [*named, *by_content] if one != {"commitInfo": {}}]


def _content(action: Json, names: Names) -> tuple[int, str, str]:
    """By what is said of a file; a name only counts where it was there before."""
    ((kind, fields),) = action.items()
    said = {key: value for key, value in fields.items() if key != "path"}
    return _ORDER.index(kind), json.dumps(said, sort_keys=True), names.known(fields["path"])


def _named(action: Json, names: Names) -> Json:
    ((kind, fields),) = action.items()
    path = fields.get("path")
    kept = {key: value for key, value in fields.items() if key not in _DRAWN and value is not None}
    if kind == "commitInfo":
        kept = {"inCommitTimestamp": "<time>"} if "inCommitTimestamp" in fields else {}
        if _PRESERVED in fields.get("tags", {}):
            kept["tags"] = {_PRESERVED: fields["tags"][_PRESERVED]}
    elif kind == "metaData":
        schema = names.ids_in(json.loads(kept["schemaString"]))
        settings = {key: _without_time(key, value) for key, value in kept["configuration"].items()}
        kept = {**kept, "schemaString": schema, "configuration": settings}
    elif kind == "protocol":
        kept = {key: sorted(value) if isinstance(value, list) else value for key, value in kept.items()}
    elif kind == "domainMetadata":
        kept["configuration"] = _parsed(kept["configuration"])
    if kind == "remove":
        kept.pop("stats", None)
    if "stats" in kept:
        kept["stats"] = json.loads(kept["stats"])
        # An addition of ours, which no protocol knows.
        kept["stats"].pop("nanCount", None)
    if kind in ("add", "remove") and "tags" in kept:
        # The parity goes by the bytes, which differ from one version of Arrow to the next.
        kept["tags"] = {key: value for key, value in kept["tags"].items() if key != TAG}
        if not kept["tags"]:
            del kept["tags"]
    if "deletionVector" in kept:
        kept["deletionVector"] = {"cardinality": kept["deletionVector"]["cardinality"]}
    kept = names.ids_in({key: value for key, value in kept.items() if key != "path"})
    return {kind: {**kept, "path": path} if path is not None else kept}


def _without_time(key: str, value: str) -> str:
    return "<time>" if key.endswith("Timestamp") else value


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _columns_of(path: Path, files: Sequence[tuple[str, str]], names: Names) -> list[Json]:
    """The columns of Parquet files; those with the same ones are together."""
    found: list[Json] = []
    for raw, name in files:
        columns = names.ids_in(columns_of(path / unquote(raw)))
        same = next((one for one in found if one["columns"] == columns), None)
        if same is None:
            found.append({"of": [name], "columns": columns})
        else:
            same["of"].append(name)
    return found


def _checkpoint_of(path: Path, version: int, names: Names) -> list[Json]:
    """The actions of a version's checkpoint, those of its sidecars among them."""
    (written,) = (path / "_delta_log").glob(f"{version:020d}.checkpoint*.parquet")
    rows = pq.read_table(written).to_pylist()
    for sidecar in [row["sidecar"]["path"] for row in rows if row.get("sidecar")]:
        rows += pq.read_table(path / "_delta_log" / "_sidecars" / sidecar).to_pylist()
    found = []
    for row in rows:
        ((kind, fields),) = ((kind, fields) for kind, fields in row.items() if fields is not None)
        if kind not in ("sidecar", "checkpointMetadata"):
            found.append(_named({kind: _from_parquet(fields)}, names))
    for action in found:
        ((kind, fields),) = action.items()
        if "path" in fields:
            action[kind] = {**fields, "path": names.file(fields["path"])}
    return sorted(found, key=lambda one: (_ORDER.index(next(iter(one))), json.dumps(one, sort_keys=True)))


def _from_parquet(value: Any) -> Any:
    """Fields of an action as JSON has them: maps are objects, nothing is null but the values of maps."""
    if isinstance(value, dict):
        return {
            key: dict(inner) if key in _MAPS else _from_parquet(inner)
            for key, inner in value.items()
            if inner is not None
        }
    return to_json(value)


# ------------------------------------------------------------ rows


def from_json(schema: StructType, rows: list[Json]) -> pa.Table:
    """Rows of a vector for a writer: the columns that the rows give, of the table's types."""
    given = {name for row in rows for name in row}
    columns = [field for field in to_arrow(schema) if field.name in given]
    arrays = [
        pa.array([_value(row.get(field.name), field.type) for row in rows], field.type) for field in columns
    ]
    return pa.Table.from_arrays(arrays, schema=pa.schema(columns))


def _value(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_floating(kind):
        return float(value)
    if pa.types.is_decimal(kind):
        return decimal.Decimal(value)
    if pa.types.is_date(kind):
        return dt.date.fromisoformat(value)
    if pa.types.is_timestamp(kind):
        return dt.datetime.fromisoformat(value)
    if pa.types.is_binary(kind):
        return bytes.fromhex(value)
    if pa.types.is_map(kind):
        return [tuple(pair) for pair in value]
    if pa.types.is_struct(kind):
        return {field.name: _value(value[field.name], field.type) for field in kind}
    return value


def _rows_of(table: DeltaTable) -> list[Json]:
    tracked = table.metadata().configuration.get("delta.enableRowTracking") == "true"
    return _json_rows(table.to_pyarrow_table(row_ids=tracked))


def _json_rows(table: pa.Table) -> list[Json]:
    rows = [{name: to_json(value) for name, value in row.items()} for row in table.to_pylist()]
    return sorted(rows, key=lambda row: (row["id"], json.dumps(row, sort_keys=True)))


def to_json(value: Any) -> Any:
    """A value of a row as a vector has it."""
    if isinstance(value, float):
        return str(value).replace("nan", "NaN") if not math.isfinite(value) else value
    if isinstance(value, decimal.Decimal):
        return str(value)
    if isinstance(value, dt.datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {key: to_json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(inner) for inner in value]
    return value


# ------------------------------------------------------------ files


def string_of(dv: Json) -> str:
    """The file of a vector."""
    return json.dumps(dv, indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    """Write every vector that the library can make."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, operations in INPUTS.items():
        try:
            dv = replay(name, operations)
        except NotOpenError as error:
            print(f"left out: {error}"[:160])
            continue
        (FOLDER / f"{name}.json").write_text(string_of(dv), encoding="utf-8")


if __name__ == "__main__":
    main()
