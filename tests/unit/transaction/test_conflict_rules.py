"""Which pairs of operations may be ordered one after the other, by rule and isolation level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from delta_core.actions import (
    Action,
    AddFile,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from delta_core.expressions.ast import Column, Comparison, ComparisonOperator, Expression, Literal
from delta_core.transaction.conflict_checker import CONFLICT_RULES, find_conflict
from delta_core.transaction.isolation import IsolationLevel
from delta_core.transaction.read_set import CommitFootprint, ReadSet, effective_isolation
from delta_core.transaction.winning_commit import WinningCommit

SERIALIZABLE = IsolationLevel.SERIALIZABLE
WRITE_SERIALIZABLE = IsolationLevel.WRITE_SERIALIZABLE
SNAPSHOT = IsolationLevel.SNAPSHOT_ISOLATION

METADATA = Metadata(id="t", schema_string='{"type":"struct","fields":[]}', partition_columns=("p",))


def add(path: str, p: str = "1", *, data_change: bool = True) -> AddFile:
    return AddFile(
        path=path,
        partition_values={"p": p},
        size_bytes=1,
        modification_time_ms=0,
        data_change=data_change,
    )


def remove(path: str, p: str = "1", *, data_change: bool = True) -> RemoveFile:
    return RemoveFile(path=path, partition_values={"p": p}, data_change=data_change)


def p_is(value: str) -> Expression:
    return Comparison(ComparisonOperator.EQ, Column(("p",)), Literal(value))


def match_partition(files: Sequence[AddFile], predicate: Expression) -> AddFile | None:
    assert isinstance(predicate, Comparison)
    assert isinstance(predicate.right, Literal)
    return next((f for f in files if f.partition_values["p"] == predicate.right.value), None)


def winner(*actions: Action, blind: bool | None = None) -> WinningCommit:
    info = CommitInfo(operation="WINNER", is_blind_append=blind)
    return WinningCommit.of(5, [info, *actions])


def ours(
    *actions: Action, reads: ReadSet | None = None, level: IsolationLevel = WRITE_SERIALIZABLE
) -> CommitFootprint:
    return CommitFootprint.of(
        actions,
        reads=reads or ReadSet(),
        isolation=effective_isolation(actions, level),
        base_metadata=METADATA,
        matcher=match_partition,
    )


WINNERS: dict[str, WinningCommit] = {
    "blind append p=1": winner(add("w1"), blind=True),
    "blind append p=2": winner(add("w2", "2"), blind=True),
    "reading append p=1": winner(add("w1"), blind=False),
    "append of unknown kind p=1": winner(add("w1"), blind=None),
    "delete of a whole file p=1": winner(remove("f1")),
    "update p=1": winner(remove("f1"), add("w1")),
    "update p=2": winner(remove("g1", "2"), add("w2", "2")),
    "compaction p=1": winner(remove("f1", data_change=False), add("w1", data_change=False)),
    "properties, inert": winner(replace(METADATA, configuration={"delta.checkpointInterval": "5"})),
    "properties, demanding": winner(replace(METADATA, configuration={"delta.appendOnly": "true"})),
    "schema change": winner(replace(METADATA, schema_string="{}")),
    "protocol change": winner(Protocol(min_reader_version=1, min_writer_version=3)),
    "transaction of app a": winner(SetTransaction(app_id="a", version=1)),
    "domain d": winner(DomainMetadata(domain="d", configuration="")),
    "start of a vacuum": WinningCommit.of(5, [CommitInfo(operation="VACUUM START")]),
    "end of a vacuum": WinningCommit.of(5, [CommitInfo(operation="VACUUM END")]),
}


def transaction(name: str, level: IsolationLevel) -> CommitFootprint:
    whole = ReadSet(whole_table=True)
    one = ReadSet(predicates=(p_is("1"),), files=frozenset({"f1", "f2"}))
    predicate_only = ReadSet(predicates=(p_is("1"),))
    match name:
        case "blind append":
            return ours(add("o"), level=level)
        case "append after reading p=1":
            return ours(add("o"), reads=predicate_only, level=level)
        case "delete p=1":
            return ours(remove("f1"), reads=one, level=level)
        case "rewrite f2 of p=1":
            return ours(remove("f2"), add("o"), reads=one, level=level)
        case "overwrite":
            return ours(remove("f1"), remove("g1", "2"), add("o"), reads=whole, level=level)
        case "overwrite with another schema":
            new = replace(METADATA, schema_string="[]")
            return ours(new, remove("f1"), remove("g1", "2"), add("o"), reads=whole, level=level)
        case "compaction of f1":
            return ours(remove("f1", data_change=False), add("o", data_change=False), level=level)
        case "set properties":
            return ours(replace(METADATA, configuration={"x": "y"}), level=level)
        case "files of an old version":
            return replace(ours(add("old"), level=level), reuses_files=True)
        case "app a":
            return ours(add("o"), SetTransaction(app_id="a", version=2), level=level)
        case "enable row tracking":
            return ours(replace(METADATA, configuration={"delta.enableRowTracking": "true"}), level=level)
        case _:
            assert name == "domain d"
            return ours(DomainMetadata(domain="d", configuration="x"), level=level)


ALWAYS = {
    "schema change": "metadata_changed",
    "properties, demanding": "metadata_changed",
    "protocol change": "protocol_changed",
}
INERT = {"properties, inert": "metadata_changed"}

# Expected rule by winner; winners that are not listed get along. Read as: ours x level -> winner -> rule.
EXPECTED: dict[tuple[str, IsolationLevel], dict[str, str]] = {
    ("blind append", WRITE_SERIALIZABLE): {**ALWAYS},
    ("blind append", SERIALIZABLE): {**ALWAYS},
    ("append after reading p=1", WRITE_SERIALIZABLE): {
        **ALWAYS,
        **INERT,
        "reading append p=1": "concurrent_append",
        "append of unknown kind p=1": "concurrent_append",
        "update p=1": "concurrent_append",
        "delete of a whole file p=1": "delete_read",
    },
    ("append after reading p=1", SERIALIZABLE): {
        **ALWAYS,
        **INERT,
        "blind append p=1": "concurrent_append",
        "reading append p=1": "concurrent_append",
        "append of unknown kind p=1": "concurrent_append",
        "update p=1": "concurrent_append",
        "delete of a whole file p=1": "delete_read",
    },
    ("append after reading p=1", SNAPSHOT): {**ALWAYS, **INERT},
    ("delete p=1", WRITE_SERIALIZABLE): {
        **ALWAYS,
        **INERT,
        "reading append p=1": "concurrent_append",
        "append of unknown kind p=1": "concurrent_append",
        "update p=1": "concurrent_append",
        "delete of a whole file p=1": "delete_read",
        "compaction p=1": "delete_delete",
    },
    ("delete p=1", SNAPSHOT): {
        **ALWAYS,
        **INERT,
        "update p=1": "delete_delete",
        "delete of a whole file p=1": "delete_delete",
        "compaction p=1": "delete_delete",
    },
    ("rewrite f2 of p=1", SERIALIZABLE): {
        **ALWAYS,
        **INERT,
        "blind append p=1": "concurrent_append",
        "reading append p=1": "concurrent_append",
        "append of unknown kind p=1": "concurrent_append",
        "update p=1": "concurrent_append",
        "delete of a whole file p=1": "delete_read",
    },
    ("overwrite", WRITE_SERIALIZABLE): {
        **ALWAYS,
        **INERT,
        "reading append p=1": "concurrent_append",
        "append of unknown kind p=1": "concurrent_append",
        "update p=1": "concurrent_append",
        "update p=2": "concurrent_append",
        "delete of a whole file p=1": "delete_read",
        "compaction p=1": "delete_delete",
    },
    ("overwrite with another schema", WRITE_SERIALIZABLE): {
        **ALWAYS,
        **INERT,
        "blind append p=1": "concurrent_append",
        "blind append p=2": "concurrent_append",
        "reading append p=1": "concurrent_append",
        "append of unknown kind p=1": "concurrent_append",
        "update p=1": "concurrent_append",
        "update p=2": "concurrent_append",
        "delete of a whole file p=1": "delete_read",
        "compaction p=1": "delete_delete",
    },
    ("compaction of f1", SERIALIZABLE): {
        **ALWAYS,
        **INERT,
        "update p=1": "delete_delete",
        "delete of a whole file p=1": "delete_delete",
        "compaction p=1": "delete_delete",
    },
    ("set properties", WRITE_SERIALIZABLE): {**ALWAYS, **INERT},
    ("files of an old version", SNAPSHOT): {
        **ALWAYS,
        "start of a vacuum": "vacuum_started",
        "domain d": "same_domain",
    },
    ("app a", WRITE_SERIALIZABLE): {**ALWAYS, "transaction of app a": "same_application"},
    ("domain d", WRITE_SERIALIZABLE): {**ALWAYS, **INERT, "domain d": "same_domain"},
    ("enable row tracking", WRITE_SERIALIZABLE): {
        **ALWAYS,
        **INERT,
        "blind append p=1": "unnumbered_rows",
        "blind append p=2": "unnumbered_rows",
        "reading append p=1": "unnumbered_rows",
        "append of unknown kind p=1": "unnumbered_rows",
        "update p=1": "unnumbered_rows",
        "update p=2": "unnumbered_rows",
        "compaction p=1": "unnumbered_rows",
    },
}


@pytest.mark.parametrize(
    ("ours_name", "level", "winner_name"),
    [(name, level, other) for name, level in EXPECTED for other in WINNERS],
)
def test_pair_of_operations(ours_name: str, level: IsolationLevel, winner_name: str) -> None:
    violation = find_conflict(transaction(ours_name, level), WINNERS[winner_name])
    expected = EXPECTED[ours_name, level].get(winner_name)
    assert (violation.rule if violation else None) == expected
    if violation is not None:
        assert violation.winner == 5
        assert violation.error.conflict
        assert violation.error.fix


def test_every_rule_fires_somewhere_in_the_matrix() -> None:
    fired = {rule for expected in EXPECTED.values() for rule in expected.values()}
    assert fired == {rule.name for rule in CONFLICT_RULES}


@pytest.mark.parametrize("spellings", [("p=a%20b/f", "p=a b/f"), ("p=a b/f", "p=a%20b/f")])
def test_paths_spelled_differently_are_one_file(spellings: tuple[str, str]) -> None:
    mine, theirs = spellings
    violation = find_conflict(ours(remove(mine)), winner(remove(theirs)))
    assert violation is not None
    assert violation.rule == "delete_delete"
    violation = find_conflict(ours(add(mine, data_change=False)), winner(remove(theirs)))
    assert violation is not None
    assert violation.rule == "delete_read"
    read = ours(add("o"), reads=ReadSet(files=frozenset({"p=a b/f"}), predicates=(p_is("1"),)))
    violation = find_conflict(read, winner(remove(theirs)))
    assert violation is not None
    assert violation.rule == "delete_read"


def test_remove_without_partition_values_may_have_been_read() -> None:
    transaction = ours(add("o"), reads=ReadSet(predicates=(p_is("1"),)))
    violation = find_conflict(transaction, winner(RemoveFile(path="unknown")))
    assert violation is not None
    assert violation.rule == "delete_read"


@pytest.mark.parametrize("level", [SERIALIZABLE, WRITE_SERIALIZABLE, SNAPSHOT])
@pytest.mark.parametrize("data_change", [True, False])
def test_a_removed_file_is_not_added_again(level: IsolationLevel, data_change: bool) -> None:
    """A refresh of a file's statistics would bring back the rows that a concurrent delete took away."""
    refresh = ours(add("a", data_change=False), level=level)
    violation = find_conflict(refresh, winner(remove("a", data_change=data_change)))
    assert violation is not None
    assert violation.rule == "delete_read"
    assert find_conflict(refresh, winner(remove("b", data_change=data_change))) is None
    assert find_conflict(refresh, winner(add("a", data_change=False))) is None
