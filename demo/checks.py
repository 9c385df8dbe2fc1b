"""Every expectation of the demonstration, held against the tables and the raw data.

Only what a run's bookkeeping says about itself (its state, its tasks') is taken from the recorded facts;
whatever a table can tell is read from the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from demo import raw_data
from demo.profiles import PROFILES, Profile
from demo.table_reader import TableReader, duplicate_keys, provenance, same_rows

KEYS = {"flights": ["time_hour", "carrier", "flight", "origin"], "weather": ["time_hour", "origin"]}
MAINTENANCE_TASKS = ("observe", "plan", "compact", "checkpoint", "vacuum_plan", "verify")
ROLLBACK_TASKS = ("dry_run", "restore", "verify")


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One expectation and whether it held."""

    name: str
    held: bool
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What the checks look at."""

    facts: dict[str, Any]

    @cached_property
    def profile(self) -> Profile:
        return PROFILES[self.facts["profile"]]

    @cached_property
    def tables(self) -> dict[str, TableReader]:
        return {feed: TableReader(path=Path(path)) for feed, path in self.facts["tables"].items()}

    @cached_property
    def raw(self) -> dict[str, pa.Table]:
        return {feed: raw_data.read(feed, months=self.profile.months) for feed in self.profile.feeds}

    def raw_months(self, feed: str, months: tuple[int, ...]) -> pa.Table:
        table = self.raw[feed]
        return table.filter(pc.is_in(table["month"], pa.array(months, table["month"].type)))

    def version(self, point: str, feed: str) -> int:
        return int(self.facts["points"][point][feed])

    def runs(self, purpose: str) -> list[dict[str, Any]]:
        return [run for run in self.facts["runs"] if run["purpose"] == purpose]


def check_all(evidence: Evidence) -> Iterator[Check]:
    """Every check, in the order of the story. One that cannot be made counts as not held."""
    for group in _GROUPS:
        try:
            yield from group(evidence)
        except Exception as error:
            name = (group.__doc__ or group.__name__).rstrip(".")
            yield Check(name=name, held=False, detail=f"{type(error).__name__}: {error}")


def _loads(evidence: Evidence) -> Iterator[Check]:
    """Loading."""
    loads = evidence.runs("load")
    failed = [run["run_id"] for run in loads if run["state"] != "success"]
    yield Check(name="every load run succeeded", held=bool(loads) and not failed, detail=", ".join(failed))
    unverified = [
        f"{run['run_id']} verify_{feed}"
        for run in loads
        for feed in evidence.profile.feeds
        if _states(run, f"verify_{feed}") != ["success"]
    ]
    yield Check(name="every load was verified by its run", held=not unverified, detail=", ".join(unverified))
    for feed in evidence.profile.feeds:
        table, expected = evidence.tables[feed], evidence.raw[feed]
        rows = table.rows(evidence.version("loaded", feed))
        counts, wanted = raw_data.rows_per_month(rows), raw_data.rows_per_month(expected)
        wrong = [
            f"month {month}: {counts.get(month, 0):,} rows, not {wanted.get(month, 0):,}"
            for month in sorted(counts.keys() | wanted.keys())
            if counts.get(month, 0) != wanted.get(month, 0)
        ]
        yield Check(
            name=f"{feed}: each month has the rows of the raw file",
            held=not wrong,
            detail="; ".join(wrong) or f"{len(wanted)} months, {rows.num_rows:,} rows",
        )
        yield Check(name=f"{feed}: every value is the raw file's", held=same_rows(rows, expected))
        repeated = duplicate_keys(rows, KEYS[feed])
        yield Check(name=f"{feed}: no row twice", held=repeated == 0, detail=f"{repeated:,} repeated keys")
        early = evidence.raw_months(feed, evidence.profile.first_months)
        yield Check(
            name=f"{feed}: the version of the first run still reads as it was",
            held=same_rows(table.rows(evidence.version("first_months", feed)), early),
            detail=f"{early.num_rows:,} rows",
        )


def _provenance(evidence: Evidence) -> Iterator[Check]:
    """Provenance."""
    succeeded = {run["run_id"] for run in evidence.facts["runs"] if run["state"] == "success"}
    for feed in evidence.profile.feeds:
        history = evidence.tables[feed].history()
        strangers = [
            f"version {entry['version']} ({entry['operation']})"
            for entry in history
            if provenance(entry).get("run") not in succeeded
        ]
        yield Check(
            name=f"{feed}: every version names the successful run that made it",
            held=not strangers,
            detail="; ".join(strangers) or f"{len(history)} versions",
        )
        once = [
            provenance(entry).get("run") for entry in history if provenance(entry).get("dag") == "flights_etl"
        ]
        loads = [run["run_id"] for run in evidence.runs("load")]
        yield Check(
            name=f"{feed}: each load run committed exactly once",
            held=sorted(map(str, once)) == sorted(loads),
            detail=f"{len(once)} commits of {len(loads)} runs",
        )


def _bad_batches(evidence: Evidence) -> Iterator[Check]:
    """Bad batches."""
    bad = {run["batch"]: run for run in evidence.runs("bad")}
    for batch in raw_data.BAD_BATCHES:
        run = bad.get(batch)
        states = {
            name: _states(run, name) if run else None
            for name in ("extract_flights", "load_flights", "verify_flights")
        }
        refused = states == {
            "extract_flights": ["success"],
            "load_flights": ["failed"],
            "verify_flights": ["upstream_failed"],
        }
        yield Check(
            name=f"bad batch {batch}: its load failed, and with it the run",
            held=refused and run is not None and run["state"] == "failed",
            detail="" if refused else f"run {run and run['state']}, tasks {states}",
        )
        same = run is not None and run["log_before"] == run["log_after"] and bool(run["log_before"])
        yield Check(name=f"bad batch {batch}: the table's log did not change", held=same)
    table = evidence.tables["flights"]
    before, after = evidence.version("loaded", "flights"), evidence.version("after_bad", "flights")
    seen = [
        version
        for version in range(table.latest_version + 1)
        if raw_data.BAD_TAIL_NUMBER in pc.unique(table.rows(version)["tailnum"]).to_pylist()
    ]
    yield Check(
        name="no row of a bad batch is visible at any version",
        held=not seen and before == after,
        detail=f"versions {seen}" if seen else f"versions 0 to {table.latest_version}",
    )


def _maintenance(evidence: Evidence) -> Iterator[Check]:
    """Maintenance."""
    runs = evidence.runs("maintenance")
    yield Check(name="the maintenance run succeeded", held=[run["state"] for run in runs] == ["success"])
    tasks = {name: _states(runs[0], f"maintain.{name}") for name in MAINTENANCE_TASKS}
    missing = [
        f"{name} {states or 'absent'}"
        for name, states in tasks.items()
        if states != ["success"] * len(evidence.profile.feeds)
    ]
    yield Check(
        name="each maintenance task ran and succeeded for each table",
        held=not missing,
        detail="; ".join(missing),
    )
    for feed in evidence.profile.feeds:
        table = evidence.tables[feed]
        was, now = evidence.version("after_bad", feed), evidence.version("maintained", feed)
        before, after, months = table.size(was), table.size(now), len(evidence.profile.months)
        yield Check(
            name=f"{feed}: compaction left one file per month",
            held=before.files > after.files == months,
            detail=f"{before.files} files became {after.files}",
        )
        yield Check(
            name=f"{feed}: compaction kept the rows", held=same_rows(table.rows(was), table.rows(now))
        )
        changed = [
            version
            for version in range(was + 1, now + 1)
            for action in table.commit(version)
            for kind in ("add", "remove")
            if kind in action and action[kind]["dataChange"]
        ]
        yield Check(
            name=f"{feed}: compaction told readers that no data changed", held=now > was and not changed
        )
        yield Check(
            name=f"{feed}: a checkpoint was written",
            held=table.checkpointed_version() is not None,
            detail=f"of version {table.checkpointed_version()}",
        )


def _vacuum(evidence: Evidence) -> Iterator[Check]:
    """The vacuum plan."""
    for feed in evidence.profile.feeds:
        table = evidence.tables[feed]
        plan = evidence.facts["vacuum_plans"][feed]
        planned = {file["path"]: file["size_bytes"] for file in plan["files"]}
        live = table.paths(evidence.version("maintained", feed))
        listed = {path: size for path, size in evidence.facts["data_files"][feed].items() if path not in live}
        yield Check(
            name=f"{feed}: vacuum would delete what no live version needs, and nothing else",
            held=planned == listed and bool(planned),
            detail=f"{len(planned)} files, {sum(planned.values()):,} bytes",
        )
        same = set(planned) == table.vacuumable(retention_hours=0)
        yield Check(name=f"{feed}: deltalake would vacuum the same files", held=same)
        protected = table.vacuumable(retention_hours=None)
        yield Check(
            name=f"{feed}: while the retention lasts, every file is kept",
            held=not protected,
            detail=f"{len(protected)} files would go",
        )
        yield Check(
            name=f"{feed}: the plan gives a reason for each file",
            held=all(file["reason"] for file in plan["files"]),
        )
        gone = sorted(set(evidence.facts["data_files"][feed]) - set(table.data_files()))
        yield Check(name=f"{feed}: planning deleted nothing", held=not gone, detail=", ".join(gone[:3]))


def _rollback(evidence: Evidence) -> Iterator[Check]:
    """Rollback."""
    runs, table = evidence.runs("rollback"), evidence.tables["flights"]
    complete = [
        run["state"] == "success" and all(_states(run, name) == ["success"] for name in ROLLBACK_TASKS)
        for run in runs
    ]
    yield Check(name="both rollback runs planned, restored and verified", held=complete == [True, True])
    for point, target in (("rolled_back", "first_months"), ("forward", "maintained")):
        version, wanted = evidence.version(point, "flights"), evidence.version(target, "flights")
        same = version != wanted and table.paths(version) == table.paths(wanted)
        same = same and same_rows(table.rows(version), table.rows(wanted))
        yield Check(name=f"version {version} has the files and rows of version {wanted}", held=same)
    final = table.rows(table.latest_version)
    yield Check(
        name="flights: after going back and forward every value is the raw file's",
        held=same_rows(final, evidence.raw["flights"]),
        detail=f"{final.num_rows:,} rows",
    )


def _skipping(evidence: Evidence) -> Iterator[Check]:
    """Skipping."""
    answer = typical_query(evidence)
    yield Check(
        name="a query for one day reads only the files whose statistics allow it",
        held=answer.files_read < answer.files_total and answer.rows_of_read_files == answer.rows_of_raw,
        detail=f"{answer.files_read} of {answer.files_total} files, {answer.rows_of_raw:,} rows",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippingAnswer:
    """What a query for the flights of one day would read, by the minima and maxima in the log."""

    query: str
    files_total: int
    files_read: int
    rows_of_read_files: int
    rows_of_raw: int


def typical_query(evidence: Evidence) -> SkippingAnswer:
    """Plan the query by the log alone, run it on the files left, and count in the raw file."""
    table, month = evidence.tables["flights"], evidence.profile.months[1]
    day = 4
    files = table.files(table.latest_version)
    left = [
        file["path"]
        for file in files
        if file["partition"]["month"] == month and file["min"]["day"] <= day <= file["max"]["day"]
    ]
    rows = sum(
        pc.sum(
            pc.equal(pa.parquet.read_table(table.path / path, columns=["day"], partitioning=None)["day"], day)
        ).as_py()
        for path in left
    )
    raw = evidence.raw_months("flights", (month,))
    return SkippingAnswer(
        query=f"month = {month} AND day = {day}",
        files_total=len(files),
        files_read=len(left),
        rows_of_read_files=rows,
        rows_of_raw=pc.sum(pc.equal(raw["day"], day)).as_py(),
    )


def _states(run: dict[str, Any], task_id: str) -> list[str | None]:
    return [task["state"] for task in run["tasks"] if task["task_id"] == task_id]


_GROUPS: tuple[Callable[[Evidence], Iterator[Check]], ...] = (
    _loads,
    _provenance,
    _bad_batches,
    _maintenance,
    _vacuum,
    _rollback,
    _skipping,
)
