"""The judge of the ambiguity matrix tells every way to be wrong from being right."""

from __future__ import annotations

import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.concurrency.ambiguity.judge import Evidence, Expected, Outcome, Said, judge
from tests.concurrency.ambiguity.raw_tables import RawTable

EXPECTED = Expected(ids=(1, 2, 3, 4, 5))


def commit(txn_id: str, *adds: str, removes: tuple[str, ...] = ()) -> bytes:
    """A commit's bytes."""
    actions: list[dict[str, Any]] = [{"commitInfo": {"txnId": txn_id}}]
    actions += [{"remove": {"path": path}} for path in removes]
    actions += [{"add": {"path": path}} for path in adds]
    return "\n".join(json.dumps(action) for action in actions).encode()


def table(*commits: bytes, gone: frozenset[str] = frozenset(), gap: bool = False) -> RawTable:
    """A table whose file `f12` holds the rows 1 and 2."""

    def read(path: str) -> bytes:
        sink = io.BytesIO()
        pq.write_table(pa.table({"id": [int(digit) for digit in path[1:]]}), sink)
        return sink.getvalue()

    numbered = {number + (gap and number > 0): data for number, data in enumerate(commits)}
    raw = RawTable(commits=numbered, names=frozenset(), read=read)
    names = frozenset(raw.added_paths()) - gone
    return RawTable(commits=numbered, names=names, read=read)


FIRST = commit("a", "f1234")
BEFORE = table(FIRST)
LANDED = table(FIRST, commit("b", "f5"))


@pytest.mark.parametrize(
    ("said", "after", "outcome"),
    [
        (Said.DONE, LANDED, Outcome.ONCE),
        (Said.DONE, BEFORE, Outcome.LOST),
        (Said.DONE, table(FIRST, commit("c", "f5")), Outcome.LOST),
        (Said.FAILED, LANDED, Outcome.FAILED_BUT_LANDED),
        (Said.FAILED, BEFORE, Outcome.FAILED_CLEANLY),
        (Said.DONE, table(FIRST, commit("b", "f5"), commit("c", "f5")), Outcome.DOUBLED),
        (Said.DONE, table(FIRST, commit("b", "f5"), commit("b", "f6")), Outcome.DOUBLED),
        (Said.DONE, table(FIRST, commit("b", "f5", "f5")), Outcome.DOUBLED),
        (Said.DONE, table(FIRST, commit("b", "f5"), gap=True), Outcome.DAMAGED),
        (Said.DONE, table(commit("x", "f1234"), commit("b", "f5")), Outcome.DAMAGED),
        (Said.DONE, table(FIRST, commit("b", "f6")), Outcome.DAMAGED),
        (Said.DONE, table(FIRST, commit("b", "f5", removes=("f1234",))), Outcome.DAMAGED),
        (Said.DONE, table(FIRST, commit("b", "f5"), gone=frozenset({"f5"})), Outcome.DAMAGED),
        (Said.UNKNOWN, LANDED, Outcome.UNKNOWN),
        (Said.UNKNOWN, table(FIRST, commit("b", "f5"), gone=frozenset({"f5"})), Outcome.DAMAGED),
        (Said.UNKNOWN, BEFORE, Outcome.DAMAGED),
    ],
)
def test_what_a_table_shows(said: Said, after: RawTable, outcome: Outcome) -> None:
    evidence = Evidence(said=said, error="", before=BEFORE, after=after, txn_id="b")
    assert judge(evidence, EXPECTED).outcome is outcome


def test_an_unknown_outcome_may_not_have_landed_but_keeps_its_files() -> None:
    kept = RawTable(commits=BEFORE.commits, names=BEFORE.names | {"f5"}, read=BEFORE.read)
    evidence = Evidence(said=Said.UNKNOWN, error="", before=BEFORE, after=kept)
    assert judge(evidence, EXPECTED).outcome is Outcome.UNKNOWN


def test_another_reader_has_a_say() -> None:
    evidence = Evidence(said=Said.DONE, error="", before=BEFORE, after=LANDED, read_by_peer=(1, 2, 3, 4))
    assert judge(evidence, EXPECTED).outcome is Outcome.DAMAGED


def test_a_restored_file_is_not_added_twice() -> None:
    before = table(FIRST, commit("b", "f5", removes=("f1234",)))
    after = table(*before.commits.values(), commit("c", "f1234", removes=("f5",)))
    evidence = Evidence(said=Said.DONE, error="", before=before, after=after, txn_id="c")
    assert judge(evidence, Expected(ids=(1, 2, 3, 4))).outcome is Outcome.ONCE
