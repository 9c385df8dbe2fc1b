"""Tables that delta-spark creates with given features and changes in random ways, all through SQL."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import types as t

from tests.support.feature_sets import FEATURES, SWITCHED_ON_LATER, FeatureSet
from tests.support.feature_values import literal, predicate, quoted, rows, simple_type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COLUMNS = (
    "n INT",
    "t STRING",
    "d DOUBLE",
    "f FLOAT",
    "amount DECIMAL(8,2)",
    "day DATE",
    "at TIMESTAMP",
    "raw BINARY",
    "flag BOOLEAN",
    "small SMALLINT",
    "tiny TINYINT",
)
_NESTED = (
    "s STRUCT<a: INT, b: STRING, c: STRUCT<x: SMALLINT>>",
    "l ARRAY<INT>",
    "m MAP<STRING, FLOAT>",
    "ls ARRAY<STRUCT<x: INT, y: STRING>>",
)
_PARTITIONS = ("p STRING", "p INT", "p DATE", "p TIMESTAMP", "p DECIMAL(6,2)", "p DOUBLE", "p BOOLEAN")
_WIDER: dict[str, tuple[str, ...]] = {
    "tinyint": ("SMALLINT", "INT", "BIGINT", "DOUBLE", "DECIMAL(10,0)"),
    "smallint": ("INT", "BIGINT", "DOUBLE"),
    "int": ("BIGINT", "DOUBLE", "DECIMAL(12,1)"),
    "bigint": ("DECIMAL(22,2)",),
    "float": ("DOUBLE",),
    "decimal(8,2)": ("DECIMAL(12,4)",),
    "decimal(6,2)": ("DECIMAL(9,2)",),
    "date": ("TIMESTAMP_NTZ",),
}
_MAPPED = frozenset({"mapping-name", "mapping-id", "iceberg-compat"})
_ODD_NAMES = ("odd name", "x.y", "a,b;{c}", "tab\\tand=(x)", "Ü", "back`tick")
_COMPUTED = frozenset({"gen", "gen_day", "ident"})
_KEY_VALUES = range(40)

_DROPPABLE = {
    "dropped-feature": "vacuumProtocolCheck",
    "deletion-vectors": "deletionVectors",
    "mapping-name": "columnMapping",
    "type-widening": "typeWidening",
    "v2-checkpoint": "v2Checkpoint",
}
_CHANGING = frozenset({"update", "delete", "merge", "overwrite", "replace_where", "restore"})
"""What a table that is only appended to refuses."""


SparkErrors = (PySparkException, Py4JJavaError)
"""What a refusal by delta-spark arrives as."""


def condition_of(error: Exception) -> str:
    """The name of the innermost error, and the beginning of what it says."""
    if not isinstance(error, Py4JJavaError):
        return (error.getCondition() if isinstance(error, PySparkException) else None) or str(error)[:200]
    cause = error.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    return str(cause.toString()).splitlines()[0][:200]


class FeatureTable:
    """One table while it is being made.

    Attributes:
        path: its folder.
        done: the operations that delta-spark carried out.
        refused: those that it refused, by operation and reason.
    """

    def __init__(self, spark: SparkSession, rng: random.Random, features: FeatureSet, path: Path) -> None:
        """Choose how the table is to be; nothing is written yet."""
        self._spark = spark
        self._rng = rng
        self._features = features
        self.path = path
        self._name = f"delta.`{path}`"
        self.done: list[str] = []
        self.refused: Counter[str] = Counter()
        later = sorted(features & SWITCHED_ON_LATER)
        self._later = [name for name in later if len(features) > 1 and rng.random() < 0.3]
        self._mapped = bool((features - {*self._later}) & _MAPPED)
        self._added = 0

    def build(self, operations: int) -> None:
        """Create the table and change it so many times."""
        conf = self._spark.conf
        conf.set("spark.databricks.delta.checkpoint.partSize", self._rng.choice(["1000000", "1000000", "4"]))
        conf.set(
            "spark.databricks.delta.checkpointV2.topLevelFileFormat", self._rng.choice(["json", "parquet"])
        )
        self._create()
        self._run("insert")
        while len(self.done) < operations:
            self._run(self._rng.choice(self._choices()))

    # ------------------------------------------------------------ the definition

    def _create(self) -> None:
        rng, has = self._rng, self._features.__contains__
        properties = {"delta.checkpointInterval": str(rng.randint(2, 6))}
        for feature in sorted(self._features - {*self._later}):
            properties |= FEATURES[feature]
        if rng.random() < 0.3:
            properties["delta.dataSkippingNumIndexedCols"] = str(rng.randint(1, 4))
        if has("struct-statistics"):
            properties["delta.checkpoint.writeStatsAsJson"] = rng.choice(["true", "false"])
        columns = ["id BIGINT NOT NULL" if has("constraints") else "id BIGINT", "at TIMESTAMP"]
        columns += [one for one in rng.sample(_COLUMNS, rng.randint(3, 6)) if one not in columns]
        columns += _NESTED if has("nested") else rng.sample(_NESTED, 1)
        if has("timestamp-ntz"):
            columns += ["ntz TIMESTAMP_NTZ", "ntzs ARRAY<TIMESTAMP_NTZ>"]
        if has("variant"):
            columns += ["v VARIANT", "sv STRUCT<v: VARIANT>"]
        if has("defaults"):
            columns += ["fallback STRING DEFAULT 'it''s'", "fallback_n INT DEFAULT 7"]
        if has("generated"):
            columns += ["gen BIGINT GENERATED ALWAYS AS (id * 2)"]
            columns += ["gen_day DATE GENERATED ALWAYS AS (CAST(at AS DATE))"]
        if has("identity"):
            kind, step = rng.choice(["ALWAYS", "BY DEFAULT"]), rng.choice([1, -3])
            columns.append(f"ident BIGINT GENERATED {kind} AS IDENTITY (START WITH 10 INCREMENT BY {step})")
        if self._mapped:
            columns += [f"{quoted(name)} INT" for name in rng.sample(_ODD_NAMES, 2)]
        layout = self._layout(columns)
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        self._sql(
            f"CREATE TABLE {self._name} ({', '.join(columns)}) USING DELTA {layout} TBLPROPERTIES ({listed})"
        )
        if has("constraints"):
            self._sql(f"ALTER TABLE {self._name} ADD CONSTRAINT near CHECK (id > -1000)")

    def _layout(self, columns: list[str]) -> str:
        rng = self._rng
        if "clustering" in self._features:
            return f"CLUSTER BY ({rng.choice(['id', 'at', 'id, at'])})"
        if not self._features & {"partitions", "materialized-partitions"}:
            return ""
        columns.append(rng.choice(_PARTITIONS))
        names = ["p"]
        if "generated" in self._features and rng.random() < 0.5:
            names.append("gen_day")
        elif rng.random() < 0.4:
            columns.append("`P 2` STRING" if self._mapped else "p2 STRING")
            names.append(columns[-1].rpartition(" ")[0])
        return f"PARTITIONED BY ({', '.join(names)})"

    # ------------------------------------------------------------ which operation

    def _choices(self) -> list[str]:
        names = ["insert"] * 4 + ["update", "delete", "merge"] * 3 + ["overwrite", "replace_where", "restore"]
        names += ["optimize", "add_column", "add_column", "switch"]
        if "append-only" in self._features:
            names = [name for name in names if name not in _CHANGING]
        if self._mapped:
            names += ["rename_column", "rename_column", "drop_column"]
        if "type-widening" in self._features - {*self._later}:
            names += ["widen_type"] * 3
        if "deletion-vectors" in self._features:
            names += ["purge", "delete", "delete"]
        if "defaults" in self._features:
            names += ["insert_default"]
        if "dropped-feature" in self._features and len(self.done) > 8:
            names += ["drop_feature"]
        if self._later:
            names += ["enable"] * 4
        return names

    def _run(self, name: str) -> None:
        operation: Callable[[], str] = getattr(self, f"_{name}")
        try:
            self.done.append(operation())
        except SparkErrors as error:
            self.refused[f"{name}: {condition_of(error)}"] += 1
            if name == "insert" or self.refused.total() > 40:
                raise

    def _sql(self, text: str) -> None:
        self._spark.sql(text).collect()

    def _all_fields(self) -> list[t.StructField]:
        return list(self._spark.table(self._name).schema.fields)

    def _fields(self) -> list[t.StructField]:
        """The columns that are written to, with `id` as in the definition."""
        fields = [field for field in self._all_fields() if field.name not in _COMPUTED]
        if "constraints" in self._features:
            return [
                f if f.name != "id" else t.StructField("id", t.LongType(), nullable=False) for f in fields
            ]
        return fields

    def _where(self) -> str:
        if self._rng.random() < 0.5:
            start = self._rng.choice(_KEY_VALUES)
            return f"id BETWEEN {start} AND {start + self._rng.randint(0, 12)}"
        return predicate(self._rng, self._all_fields())

    def _keys(self, count: int, fields: list[t.StructField]) -> list[str]:
        keys = [str(self._rng.choice(_KEY_VALUES)) for _ in range(count)]
        nullable = "constraints" not in self._features and fields[0].nullable
        return ["CAST(NULL AS BIGINT)" if nullable and self._rng.random() < 0.1 else key for key in keys]

    # ------------------------------------------------------------ rows

    def _insert(self) -> str:
        return self._write("INSERT INTO", "")

    def _overwrite(self) -> str:
        self._write("INSERT OVERWRITE", "")
        return "overwrite"

    def _write(self, verb: str, rest: str) -> str:
        fields, count = self._fields(), self._rng.randint(3, 12)
        names = ", ".join(quoted(field.name) for field in fields)
        values = rows(self._rng, fields, count, id=self._keys(count, fields))
        # Several tasks, so that one commit has several files.
        hint = self._rng.choice(["", "/*+ REPARTITION(2) */"])
        self._sql(
            f"{verb} {self._name} ({names}) {rest} SELECT {hint} * FROM VALUES {values} AS given({names})"
        )
        return "insert"

    def _insert_default(self) -> str:
        count = self._rng.randint(1, 3)
        values = ", ".join(f"({self._rng.choice(_KEY_VALUES)}, DEFAULT)" for _ in range(count))
        self._sql(f"INSERT INTO {self._name} (id, fallback) VALUES {values}")
        return "insert_default"

    def _update(self) -> str:
        fields = [field for field in self._fields() if field.name != "id"]
        chosen = self._rng.sample(fields, min(len(fields), self._rng.randint(1, 2)))
        changes = ", ".join(f"{quoted(f.name)} = {literal(self._rng, f.dataType)}" for f in chosen)
        if self._rng.random() < 0.2:
            changes = "id = id + 1"
        self._sql(f"UPDATE {self._name} SET {changes} WHERE {self._where()}")
        return "update"

    def _delete(self) -> str:
        where = f"WHERE {self._where()}" if self._rng.random() < 0.97 else ""
        self._sql(f"DELETE FROM {self._name} {where}")
        return "delete"

    def _merge(self) -> str:
        rng, fields = self._rng, self._fields()
        count = rng.randint(3, 8)
        keys = [str(key) for key in rng.sample(_KEY_VALUES, count)]
        names = [quoted(field.name) for field in fields]
        source = f"VALUES {rows(rng, fields, count, id=keys)} AS given({', '.join(names)})"
        changed = ", ".join(f"{name} = s.{name}" for name in rng.sample(names, 2))
        clauses = []
        if rng.random() < 0.4:
            clauses.append("WHEN MATCHED AND s.id % 3 = 0 THEN DELETE")
        clauses.append(f"WHEN MATCHED THEN UPDATE SET {changed}")
        if rng.random() < 0.8:
            given = ", ".join(f"s.{name}" for name in names)
            clauses.append(f"WHEN NOT MATCHED THEN INSERT ({', '.join(names)}) VALUES ({given})")
        if rng.random() < 0.25:
            clauses.append(f"WHEN NOT MATCHED BY SOURCE AND t.id > {rng.choice(_KEY_VALUES)} THEN DELETE")
        self._sql(
            f"MERGE INTO {self._name} t USING (SELECT * FROM {source}) s ON t.id = s.id {' '.join(clauses)}"
        )
        return "merge"

    def _replace_where(self) -> str:
        rng, fields = self._rng, self._fields()
        start, count = rng.choice(_KEY_VALUES), rng.randint(1, 5)
        keys = [str(start + rng.randint(0, 5)) for _ in range(count)]
        names = ", ".join(quoted(field.name) for field in fields)
        self._sql(
            f"INSERT INTO {self._name} BY NAME REPLACE WHERE id BETWEEN {start} AND {start + 5} "
            f"SELECT * FROM VALUES {rows(rng, fields, count, id=keys)} AS given({names})"
        )
        return "replace_where"

    # ------------------------------------------------------------ files and versions

    def _optimize(self) -> str:
        if "clustering" in self._features:
            self._sql(f"OPTIMIZE {self._name} {self._rng.choice(['', 'FULL'])}")
            return "cluster"
        if self._rng.random() < 0.5:
            self._sql(f"OPTIMIZE {self._name}")
            return "optimize"
        self._sql(f"OPTIMIZE {self._name} ZORDER BY (id)")
        return "z_order"

    def _purge(self) -> str:
        self._sql(f"REORG TABLE {self._name} APPLY (PURGE)")
        return "purge"

    def _restore(self) -> str:
        newest = self._spark.sql(f"DESCRIBE HISTORY {self._name} LIMIT 1").collect()[0]["version"]
        version = self._rng.randint(max(0, newest - 8), newest)
        self._sql(f"RESTORE TABLE {self._name} TO VERSION AS OF {version}")
        return "restore"

    # ------------------------------------------------------------ the definition changes

    def _add_column(self) -> str:
        rng = self._rng
        self._added += 1
        place, kind = f"c{self._added}", rng.choice(["INT", "STRING", "DECIMAL(8,2)", "DATE", "TINYINT"])
        structs = [f.name for f in self._all_fields() if isinstance(f.dataType, t.StructType)]
        if structs and rng.random() < 0.4:
            place = f"{quoted(rng.choice(structs))}.{place}"
        position = rng.choice(["", "", "FIRST"]) if "." not in place else ""
        self._sql(f"ALTER TABLE {self._name} ADD COLUMNS ({place} {kind} {position})")
        return "add_column"

    def _loose(self) -> str:
        """A column, or a field of one, that nothing else depends on."""
        fields = [f for f in self._fields() if f.name not in ("id", "at", "fallback")]
        field = self._rng.choice(fields)
        inner = field.dataType.names if isinstance(field.dataType, t.StructType) else []
        nested = f".{quoted(self._rng.choice(inner))}" if inner and self._rng.random() < 0.5 else ""
        return quoted(field.name) + nested

    def _rename_column(self) -> str:
        self._added += 1
        new = self._rng.choice([f"r{self._added}", f"`new name {self._added}`", f"`r.{self._added}`"])
        self._sql(f"ALTER TABLE {self._name} RENAME COLUMN {self._loose()} TO {new}")
        return "rename_column"

    def _drop_column(self) -> str:
        if len(self._fields()) < 6:
            return self._add_column()
        self._sql(f"ALTER TABLE {self._name} DROP COLUMN {self._loose()}")
        return "drop_column"

    def _widen_type(self) -> str:
        fields = [f for f in self._fields() if simple_type(f) in _WIDER and f.name != "id"]
        places = [(quoted(f.name), simple_type(f)) for f in fields]
        for field in self._fields():
            if isinstance(field.dataType, t.StructType):
                name, inner = quoted(field.name), field.dataType.fields
                places += [(f"{name}.{quoted(f.name)}", simple_type(f)) for f in inner]
            elif isinstance(field.dataType, t.ArrayType):
                kind = field.dataType.elementType.simpleString()
                places.append((f"{quoted(field.name)}.element", kind))
            elif isinstance(field.dataType, t.MapType):
                places.append((f"{quoted(field.name)}.value", field.dataType.valueType.simpleString()))
        places = [(place, kind) for place, kind in places if kind in _WIDER]
        if not places:
            return self._add_column()
        place, kind = self._rng.choice(places)
        self._sql(f"ALTER TABLE {self._name} ALTER COLUMN {place} TYPE {self._rng.choice(_WIDER[kind])}")
        return "widen_type"

    def _switch(self) -> str:
        """Set a property that the features leave open."""
        key, value = self._rng.choice(
            [
                ("delta.checkpointPolicy", "classic"),
                ("delta.enableDeletionVectors", "false"),
                ("delta.dataSkippingNumIndexedCols", "2"),
                ("delta.checkpoint.writeStatsAsJson", "false"),
                ("delta.checkpoint.writeStatsAsJson", "true"),
            ]
        )
        self._sql(f"ALTER TABLE {self._name} SET TBLPROPERTIES ('{key}' = '{value}')")
        return "switch"

    def _enable(self) -> str:
        feature = self._later[0]
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in FEATURES[feature].items())
        self._sql(f"ALTER TABLE {self._name} SET TBLPROPERTIES ({listed})")
        self._later.pop(0)
        self._mapped |= feature in _MAPPED
        return f"enable {feature}"

    def _drop_feature(self) -> str:
        names = [name for feature, name in _DROPPABLE.items() if feature in self._features]
        name = self._rng.choice(names)
        self._sql(f"ALTER TABLE {self._name} DROP FEATURE {name}")
        self._mapped &= name != "columnMapping"
        return f"drop {name}"
