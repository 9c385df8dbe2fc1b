"""A sample of tables that we write with several features each: peers read every version, and go on.

`make soak-written-tables` takes every feature alone and every pair. The sample is drawn by DELTAWARD_SEED.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.support.delta_spark import sample_by_delta_spark
from tests.support.feature_sets import covering_sets, possible_pairs
from tests.support.soak import sample
from tests.support.written_features import all_ways, excluding
from tests.support.written_tables import WrittenTable, drawn, steps


def check(report: dict[str, Any], tables: int) -> None:
    failures = [
        f"{one['table']} {one['features']}: {one['error']}" for one in report["tables"] if "error" in one
    ]
    assert not failures, "\n".join(failures)
    assert report["passed"] == tables
    assert report["versions"] > tables


@pytest.mark.slow
def test_deltalake_and_duckdb_read_what_we_wrote(tmp_path: Path) -> None:
    report, errors = sample(
        "written-tables", tmp_path / "report.json", "--no-spark", "--first", "2", "--operations", "12"
    )
    assert report, errors[-4000:]
    check(report, 2)
    assert sum(report["versions_equal"].values()) > 0


@pytest.mark.extra
@pytest.mark.spark
def test_delta_spark_reads_what_we_wrote_and_goes_on(tmp_path: Path) -> None:
    report = sample_by_delta_spark(
        "written-tables", tmp_path / "report.json", "--first", "1", "--operations", "6"
    )
    check(report, 1)
    (table,) = report["tables"]
    assert table["reads"]["delta-spark"] == {"equal": table["versions"], "refused": {}}
    assert table["goes_on"]["delta-spark"]["appended"] > 0


def test_the_sets_cover_every_pair_that_we_write(seed: str) -> None:
    names = frozenset(all_ways())
    sets = covering_sets(random.Random(seed), 150, names, excluding(names))
    assert len(sets) >= 150
    covered = {pair for pair in possible_pairs(names, excluding(names)) if any(pair <= one for one in sets)}
    assert covered == possible_pairs(names, excluding(names))
    assert not [pair for pair in excluding(names) if any(pair <= one for one in sets)]


def test_pairs_that_were_had_are_left_out(seed: str) -> None:
    """A soak that goes on with a new feature adds what has it, and nothing else."""
    names = frozenset(all_ways())
    new = min(names)
    had = covering_sets(random.Random(seed), 0, names - {new}, excluding(names))
    more = covering_sets(random.Random(seed), 0, names, excluding(names), had=had)
    assert more
    assert all(new in one for one in more)
    pairs = possible_pairs(names, excluding(names))
    assert {pair for pair in pairs if any(pair <= one for one in [*had, *more])} == pairs


def test_the_same_name_makes_the_same_table() -> None:
    def made(name: str) -> tuple[object, ...]:
        def run(draw: Any) -> tuple[object, ...]:
            table = WrittenTable()
            try:
                table.begin([all_ways()["partitions"]], draw)
                rng = random.Random(name)
                for _ in range(4):
                    table.step(rng, draw)
                return dict(table.done), [str(one.state.rows) for one in table.model.versions]
            finally:
                table.teardown()

        return drawn(name, run)

    assert made("a") == made("a")
    assert made("a") != made("b")


def test_a_table_is_changed_in_many_ways() -> None:
    names = {one.name for one in steps()}
    wanted = {
        "append",
        "overwrite",
        "replace_where",
        "delete",
        "compact",
        "z_order",
        "purge",
        "restore_version",
    }
    assert wanted | {"checkpoint", "add_column", "rename_column", "add_constraint", "vacuum"} <= names


def test_a_peer_that_reads_other_rows_is_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from tests.support.written_peers import Peers, check_table

    peers = Peers(None)
    honest = peers.readers["duckdb"]
    peers.readers["duckdb"] = lambda path, version: honest(path, version).slice(1)
    with pytest.raises(AssertionError, match="by duckdb"):
        check_table(peers, "x", [all_ways()["partitions"]], tmp_path, operations=1)
    peers.readers["duckdb"] = honest

    def loses(path: Path, rows: Any, predicate: str | None) -> None:
        if rows is not None:
            import deltalake

            deltalake.write_deltalake(str(path), rows.slice(1), mode="append")

    peers.writers["deltalake"] = loses
    with pytest.raises(AssertionError, match="what deltalake appended"):
        check_table(peers, "y", [all_ways()["partitions"]], tmp_path / "more", operations=1)
