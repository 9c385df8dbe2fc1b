"""The checks of the loaded rows and of their provenance."""

from __future__ import annotations

from collections.abc import Iterator

from demo import raw_data
from demo.checks.evidence import KEYS, Check, Evidence, task_states
from demo.table_reader import duplicate_keys, provenance, same_rows


def loads(evidence: Evidence) -> Iterator[Check]:
    """Loading."""
    runs = evidence.runs("load")
    failed = [run["run_id"] for run in runs if run["state"] != "success"]
    yield Check(name="every load run succeeded", held=bool(runs) and not failed, detail=", ".join(failed))
    unverified = [
        f"{run['run_id']} verify_{feed}"
        for run in runs
        for feed in evidence.profile.feeds
        if task_states(run, f"verify_{feed}") != ["success"]
    ]
    yield Check(name="every load was verified by its run", held=not unverified, detail=", ".join(unverified))
    for feed in evidence.profile.feeds:
        table, expected = evidence.tables[feed], evidence.raw[feed]
        rows = table.rows(evidence.version("loaded", feed))
        counts, raw_counts = raw_data.rows_per_month(rows), raw_data.rows_per_month(expected)
        wrong = [
            f"month {month}: {counts.get(month, 0):,} rows, not {raw_counts.get(month, 0):,}"
            for month in sorted(counts.keys() | raw_counts.keys())
            if counts.get(month, 0) != raw_counts.get(month, 0)
        ]
        yield Check(
            name=f"{feed}: each month has the rows of the raw file",
            held=not wrong,
            detail="; ".join(wrong) or f"{len(raw_counts)} months, {rows.num_rows:,} rows",
        )
        yield Check(name=f"{feed}: every value equals the raw file's", held=same_rows(rows, expected))
        repeated = duplicate_keys(rows, KEYS[feed])
        yield Check(
            name=f"{feed}: no key is repeated", held=repeated == 0, detail=f"{repeated:,} repeated keys"
        )
        early = evidence.raw_months(feed, evidence.profile.first_months)
        yield Check(
            name=f"{feed}: the version of the first run is still readable and unchanged",
            held=same_rows(table.rows(evidence.version("first_months", feed)), early),
            detail=f"{early.num_rows:,} rows",
        )


def origins(evidence: Evidence) -> Iterator[Check]:
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
            name=f"{feed}: every version records the successful run that committed it",
            held=not strangers,
            detail="; ".join(strangers) or f"{len(history)} versions",
        )
        once = [
            provenance(entry).get("run") for entry in history if provenance(entry).get("dag") == "flights_etl"
        ]
        # The month of the gated run counts, too. Its delivery contained only flights.
        gated = evidence.runs("gated") if feed == "flights" else []
        published = [run["run_id"] for run in (*evidence.runs("load"), *gated)]
        yield Check(
            name=f"{feed}: each load run committed exactly once",
            held=sorted(map(str, once)) == sorted(published),
            detail=f"{len(once)} commits of {len(published)} runs",
        )
