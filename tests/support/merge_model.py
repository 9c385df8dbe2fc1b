"""What a MERGE must do, in plain Python over lists of rows, and random merges to hold it against."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

Row = dict[str, Any]
Test = Callable[[Row, Row], Any]
"""Of a target row and a source row; None is SQL's null."""

SCHEMA = pa.schema(
    [("k", pa.int64()), ("k2", pa.string()), ("p", pa.string()), ("v", pa.int64()), ("w", pa.string())]
)
NONE: Row = dict.fromkeys(SCHEMA.names)


class DuplicateMatchError(Exception):
    """Several source rows match one target row."""


@dataclass(frozen=True)
class Sql:
    """An expression twice: as text, and as a function that knows nulls."""

    text: str
    value: Test


@dataclass(frozen=True)
class Clause:
    action: str
    condition: Sql | None = None
    values: dict[str, Sql] | None = None

    def takes(self, target: Row, source: Row) -> bool:
        return self.condition is None or self.condition.value(target, source) is True


@dataclass
class Case:
    """One merge: the table in files, the source, the statement."""

    target: list[list[Row]]
    source: list[Row]
    on: Sql
    partition_by: list[str]
    matched: list[Clause] = field(default_factory=list)
    not_matched: list[Clause] = field(default_factory=list)
    not_matched_by_source: list[Clause] = field(default_factory=list)

    def sql(self, table: str, source: str) -> str:
        """The statement in SQL."""
        parts = [f"MERGE INTO {table} t USING {source} s ON {self.on.text}"]
        for when, clauses in (
            ("MATCHED", self.matched),
            ("NOT MATCHED", self.not_matched),
            ("NOT MATCHED BY SOURCE", self.not_matched_by_source),
        ):
            for clause in clauses:
                condition = f" AND {clause.condition.text}" if clause.condition else ""
                parts.append(f"WHEN {when}{condition} THEN {_action_sql(clause)}")
        return "\n".join(parts)

    def expected(self) -> tuple[list[Row], dict[str, int]]:
        """The rows afterwards, and how many were inserted, updated, deleted."""
        return merged(self)


def _action_sql(clause: Clause) -> str:
    values = clause.values or {}
    match clause.action:
        case "update":
            return "UPDATE SET " + ", ".join(f"{name} = {value.text}" for name, value in values.items())
        case "insert":
            return f"INSERT ({', '.join(values)}) VALUES ({', '.join(v.text for v in values.values())})"
        case action:
            return {"update_all": "UPDATE SET *", "insert_all": "INSERT *", "delete": "DELETE"}[action]


def merged(case: Case) -> tuple[list[Row], dict[str, int]]:
    """The model."""
    counts = {"inserted": 0, "updated": 0, "deleted": 0}
    matched_sources: set[int] = set()
    out: list[Row] = []
    insert_only = not case.matched and not case.not_matched_by_source
    all_deleted = len(case.matched) == 1 and case.matched[0] == Clause("delete")
    for target in (row for file in case.target for row in file):
        matching = [i for i, source in enumerate(case.source) if case.on.value(target, source) is True]
        matched_sources.update(matching)
        if len(matching) > 1 and not insert_only and not all_deleted:
            raise DuplicateMatchError
        source = case.source[matching[0]] if matching else NONE
        clauses = case.matched if matching else case.not_matched_by_source
        clause = next((c for c in clauses if c.takes(target, source)), None)
        if clause is None:
            out.append(target)
        elif clause.action == "delete":
            counts["deleted"] += 1
        else:
            counts["updated"] += 1
            out.append(_set(clause, target, source))
    for index, source in enumerate(case.source):
        clause = next((c for c in case.not_matched if c.takes(NONE, source)), None)
        if index not in matched_sources and clause is not None:
            counts["inserted"] += 1
            out.append(_set(clause, NONE, source))
    return out, counts


def _set(clause: Clause, target: Row, source: Row) -> Row:
    if clause.action in ("update_all", "insert_all"):
        return dict(source)
    return {**target, **{name: value.value(target, source) for name, value in (clause.values or {}).items()}}


# ---------------------------------------------------------------- random merges


def _both(test: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    return None if left is None or right is None else test(left, right)


def _and(*values: Any) -> Any:
    if any(value is False for value in values):
        return False
    return None if any(value is None for value in values) else True


def _equal(column: str) -> Sql:
    return Sql(f"t.{column} = s.{column}", lambda t, s: _both(lambda a, b: a == b, t[column], s[column]))


def _every(*terms: Sql) -> Sql:
    return Sql(" AND ".join(t.text for t in terms), lambda t, s: _and(*[x.value(t, s) for x in terms]))


_ON = (
    _equal("k"),
    _equal("k"),
    _every(_equal("k"), _equal("k2")),
    _every(_equal("k"), _equal("p")),
    _every(_equal("k"), Sql("t.p = 'a'", lambda t, s: _both(lambda a, b: a == b, t["p"], "a"))),
    _every(_equal("k"), Sql("t.v >= s.v", lambda t, s: _both(lambda a, b: a >= b, t["v"], s["v"]))),
    Sql("t.k = s.k + 1", lambda t, s: _both(lambda a, b: a == b + 1, t["k"], s["k"])),
    Sql("T.K <=> S.k", lambda t, s: t["k"] == s["k"]),
    Sql("s.k = t.k AND upper(t.k2) = s.k2", lambda t, s: _and(
        _both(lambda a, b: a == b, t["k"], s["k"]), _both(lambda a, b: a.upper() == b, t["k2"], s["k2"])
    )),
)  # fmt: skip


def _conditions(side: str) -> list[Sql]:
    def row(t: Row, s: Row) -> Row:
        return t if side == "t" else s

    return [
        Sql(f"{side}.v > 5", lambda t, s: _both(lambda a, b: a > b, row(t, s)["v"], 5)),
        Sql(f"{side}.v % 2 = 0", lambda t, s: _both(lambda a, b: a % b == 0, row(t, s)["v"], 2)),
        Sql(f"{side}.w IS NULL", lambda t, s: row(t, s)["w"] is None),
        Sql(f"{side}.p = 'b'", lambda t, s: _both(lambda a, b: a == b, row(t, s)["p"], "b")),
    ]


_COMPARED = [
    Sql("s.v > t.v", lambda t, s: _both(lambda a, b: a > b, s["v"], t["v"])),
    Sql("coalesce(s.w, '') <> coalesce(t.w, '')", lambda t, s: (s["w"] or "") != (t["w"] or "")),
]


def _value(rng: random.Random, column: str, *, sides: str) -> Sql:
    if column in ("k", "v"):
        options = [Sql("7", lambda t, s: 7), Sql("NULL", lambda t, s: None)]
        options += [
            Sql(f"{x}.v + 1", lambda t, s, x=x: _both(lambda a, b: a + b, (t if x == "t" else s)["v"], 1))
            for x in sides
        ]
        if sides == "ts":
            options.append(Sql("t.v * 2 + s.v", lambda t, s: _both(lambda a, b: a * 2 + b, t["v"], s["v"])))
    else:
        options = [Sql("'new'", lambda t, s: "new")]
        options += [Sql(f"{x}.{column}", lambda t, s, x=x: (t if x == "t" else s)[column]) for x in sides]
        if sides == "ts" and column == "w":
            options.append(
                Sql("concat(t.w, '/', s.w)", lambda t, s: _both(lambda a, b: f"{a}/{b}", t["w"], s["w"]))
            )
    return rng.choice(options)


def random_case(rng: random.Random) -> Case:
    """Small tables with nulls, repeated keys and partitions; statements with up to three clauses a kind."""
    target_keys = list(range(rng.choice((0, 4, 12, 20))))
    if rng.random() < 0.2:
        target_keys += target_keys[:2]
    rows = [_row(rng, key if rng.random() > 0.08 else None) for key in target_keys]
    files = rng.randint(1, 3)
    rng.shuffle(rows)
    unique_source = rng.random() < 0.8
    source_keys = rng.sample(range(25), rng.choice((0, 3, 9, 15)))
    if not unique_source:
        source_keys += source_keys[:2]
    source = [_row(rng, key) for key in source_keys]
    if rng.random() < 0.3:
        source.append(_row(rng, None))
    case = Case(
        target=[rows[index::files] for index in range(files)],
        source=source,
        on=rng.choice(_ON),
        partition_by=rng.choice(([], [], ["p"])),
    )
    while not (case.matched or case.not_matched or case.not_matched_by_source):
        case.matched = _clauses(rng, ("update", "update_all", "delete"), "ts")
        case.not_matched = _clauses(rng, ("insert", "insert_all"), "s")
        case.not_matched_by_source = _clauses(rng, ("update", "delete"), "t") if rng.random() < 0.4 else []
    return case


def _row(rng: random.Random, key: int | None) -> Row:
    return {
        "k": key,
        "k2": rng.choice(("X", "Y", "x", None)),
        "p": rng.choice(("a", "b", "c/ ü", None)),
        "v": rng.choice((None, *range(12))),
        "w": rng.choice((None, "", "text", "ü")),
    }


def _clauses(rng: random.Random, actions: Sequence[str], sides: str) -> list[Clause]:
    found = []
    for index in range(number := rng.choice((0, 1, 1, 2, 3))):
        last = index == number - 1
        options = [condition for side in sides for condition in _conditions(side)]
        options += _COMPARED if sides == "ts" else []
        condition = None if last and rng.random() < 0.6 else rng.choice(options)
        action = rng.choice(actions)
        values = None
        if action in ("update", "insert"):
            names = rng.sample(SCHEMA.names, rng.randint(1, 4))
            values = {name: _value(rng, name, sides=sides) for name in names}
        found.append(Clause(action, condition, values))
    return found
