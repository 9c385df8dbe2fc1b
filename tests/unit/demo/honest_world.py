"""A world in which everything of the demonstration went well, made by another writer, and its facts."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, write_deltalake

from demo import deliveries, raw_data
from demo.checks.corrections import KEY
from demo.checks.maintenance import STEPS
from demo.checks.rollback import STOPPED
from demo.deliveries import BAD_TAIL_NUMBER, FAULTS, MIXED, ROTTEN
from demo.profiles import Profile
from demo.table_reader import LOG, TableReader

Facts = dict[str, Any]

FEEDS = ("flights", "weather")
SMALL = Profile(name="small", first_months=(1,), single_months=(2,), feeds=FEEDS, standalone=False)
PERSON = "admin"


def by(run_id: str, dag_id: str = "flights_etl", **more: Any) -> CommitProperties:
    said = {"dag": dag_id, "run": run_id, **more}
    return CommitProperties(custom_metadata={"userMetadata": json.dumps(said)})


def append(path: Path, rows: pa.Table, commit: CommitProperties) -> None:
    write_deltalake(
        str(path),
        rows,
        mode="append",
        partition_by=["year", "month"],
        commit_properties=commit,
        target_file_size=60_000 if path.name == "flights" else 8_000,
    )


class HonestWorld:
    """Makes the tables, then tells the facts as the scenario would."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.flights = home / "flights"
        self.facts: Facts = {
            "profile": SMALL.name,
            "person": PERSON,
            "tables": {feed: str(home / feed) for feed in FEEDS},
            "deliveries": {},
            "quality": {},
            "runs": [],
            "points": {},
        }
        for act in (self._load, self._refuse, self._gate, self._correct, self._maintain, self._roll_back):
            act()

    def _load(self) -> None:
        loaded = {f"{step}_{feed}": ["success"] for feed in FEEDS for step in ("extract", "load", "verify")}
        for months in (SMALL.first_months, *((month,) for month in SMALL.single_months)):
            run_id = f"load-{months}"
            for feed in FEEDS:
                append(self.home / feed, raw_data.read(feed, months=months), by(run_id))
            self._ran("load", "flights_etl", run_id, loaded)
            self.facts["points"].setdefault("first_months", self._versions())
        self._note("loaded")

    def _refuse(self) -> None:
        refused = {
            "extract_flights": ["success"],
            "load_flights": ["failed"],
            "verify_flights": ["upstream_failed"],
        }
        batches = deliveries.write_bad_batches(self.home, month=2)
        log = self._log()
        for name, path in batches.items():
            self.facts["deliveries"][name] = str(path)
            more = {"batch": name, "log_before": log, "log_after": log, "reason": "CODE: a sentence"}
            self._ran("bad", "flights_etl", name, refused, **more)
        rows = raw_data.read_delivered(batches[ROTTEN]).num_rows
        self.facts["quality"][ROTTEN] = self._outcome("failed", rows=rows, bad_rows=rows // 4, published=0)
        self._note("after_bad")

    def _gate(self) -> None:
        path = deliveries.write_mixed_batch(self.home, month=2)
        self.facts["deliveries"][MIXED] = str(path)
        rows = raw_data.read_delivered(path)
        bad = pc.fill_null(pc.equal(rows["tailnum"], BAD_TAIL_NUMBER), False)
        good_rows, bad_rows = rows.filter(pc.invert(bad)), rows.filter(bad)
        quality = self._outcome(
            "quarantined", rows=rows.num_rows, bad_rows=bad_rows.num_rows, published=good_rows.num_rows
        )
        self.facts["quality"][MIXED] = quality
        write_deltalake(
            str(self.flights),
            good_rows,
            mode="overwrite",
            predicate="month = 2",
            commit_properties=by("gated", quality=quality),
        )
        reasons = [self._faults(row) for row in bad_rows.to_pylist()]
        count = bad_rows.num_rows
        aside = bad_rows.append_column("_quarantine_reason", pa.array([", ".join(it) for it in reasons]))
        aside = aside.append_column("_quarantine_expectations", pa.array(reasons))
        aside = aside.append_column("_quarantine_source", pa.array([str(path)] * count))
        aside = aside.append_column("_quarantine_batch", pa.array(["batch"] * count))
        now = pa.array([dt.datetime.now(dt.UTC)] * count, pa.timestamp("us", "UTC"))
        write_deltalake(
            str(self.flights / "_deltaward" / "quarantine"), aside.append_column("_quarantined_at", now)
        )
        self._ran("gated", "flights_etl", "gated", {"load_flights": ["success"]})
        self._note("gated")

    def _correct(self) -> None:
        path = deliveries.write_corrections(self.home, month=2, earlier_month=1)
        self.facts["deliveries"]["corrections"] = str(path)
        rows = raw_data.read_delivered(path)
        latest = rows.group_by(KEY).aggregate([("sequence", "max")])
        source = rows.join(latest.rename_columns([*KEY, "newest"]), KEY, join_type="inner")
        source = source.filter(pc.equal(source["sequence"], source["newest"]))
        on = " AND ".join(f"t.{name} = s.{name}" for name in ("year", "month", *KEY))
        columns = {name: f"s.{name}" for name in raw_data.read("flights", months=(2,)).column_names}
        (
            DeltaTable(str(self.flights))
            .merge(
                source,
                on,
                source_alias="s",
                target_alias="t",
                commit_properties=by("corrections", "flights_corrections"),
            )
            .when_matched_delete("s.correction = 'delete'")
            .when_matched_update(columns)
            .when_not_matched_insert(columns, "s.correction <> 'delete'")
            .execute()
        )
        self._rename_in_newest_commit(
            "operationMetrics",
            {
                f"num_target_rows_{it}": f"numTargetRows{it.title()}"
                for it in ("updated", "deleted", "inserted")
            },
        )
        self._ran(
            "corrections", "flights_corrections", "corrections", {"merge": ["success"], "verify": ["success"]}
        )
        self._note("corrected")

    def _maintain(self) -> None:
        commit = by("maintain", "table_maintenance")
        DeltaTable(str(self.home / "weather")).optimize.compact(commit_properties=commit)
        DeltaTable(str(self.flights)).optimize.z_order(
            ["carrier", "dest"], target_size=64 << 10, commit_properties=commit
        )
        self._rename_in_newest_commit("operationParameters", {"targetSize": "zOrderBy"})
        for feed in FEEDS:
            DeltaTable(str(self.home / feed)).create_checkpoint()
        self._note("maintained")
        done = {
            f"maintain.{step}": ["skipped" if feed in left_out else "success" for feed in FEEDS]
            for step, left_out in STEPS.items()
        }
        self._ran("maintenance", "table_maintenance", "maintain", done)
        self.facts["data_files"] = {feed: TableReader(path=self.home / feed).data_files() for feed in FEEDS}
        self.facts["vacuum_plans"] = {feed: {"files": self._vacuum_plan(feed)} for feed in FEEDS}

    def _roll_back(self) -> None:
        asked = {"dry_run": ["success"], "approve": ["success"]}
        log = self._log()
        self._ran(
            "rejected",
            "table_rollback",
            "rejected",
            {name: [state] for name, state in STOPPED.items()},
            answers=[{"chosen": "Reject", "by": PERSON}],
            log_before=log,
            log_after=log,
        )
        self._note("rejected")
        for point, target in (("rolled_back", "first_months"), ("forward", "maintained")):
            DeltaTable(str(self.flights)).restore(
                self.facts["points"][target]["flights"],
                commit_properties=by(point, "table_rollback", approver=PERSON),
            )
            self._ran(
                "rollback",
                "table_rollback",
                point,
                {**asked, "restore": ["success"], "verify": ["success"]},
                answers=[{"chosen": "Approve", "by": PERSON}],
            )
            self._note(point)

    def _ran(self, purpose: str, dag_id: str, run_id: str, states: dict[str, list[str]], **more: Any) -> None:
        run = {
            "purpose": purpose,
            "dag_id": dag_id,
            "run_id": run_id,
            "state": "failed" if any("failed" in of_task for of_task in states.values()) else "success",
            "tasks": [
                {"task_id": name, "map_index": index, "state": state}
                for name, of_task in states.items()
                for index, state in enumerate(of_task)
            ],
            "answers": [],
            "reason": None,
            **more,
        }
        self.facts["runs"].append(run)

    def _note(self, point: str) -> None:
        self.facts["points"][point] = self._versions()

    def _versions(self) -> dict[str, int]:
        return {feed: DeltaTable(str(self.home / feed)).version() for feed in FEEDS}

    def _log(self) -> list[str]:
        return sorted(path.name for path in (self.flights / LOG).iterdir())

    def _outcome(self, outcome: str, *, rows: int, bad_rows: int, published: int) -> dict[str, Any]:
        reports = {}
        for kind in ("json", "html"):
            report = self.home / f"{outcome}.{kind}"
            report.write_text("<html></html>")
            reports[f"report_{kind}"] = report.as_uri()
        return {
            "outcome": outcome,
            "rows": rows,
            "bad_rows": bad_rows,
            "published_rows": published,
            "quarantined_rows": bad_rows if published else 0,
            **reports,
        }

    def _faults(self, row: dict[str, Any]) -> list[str]:
        (fault,) = [it for it in FAULTS if all(str(row[name]) == value for name, value in it.items())]
        return [f"{name} is wrong" for name in fault]

    def _vacuum_plan(self, feed: str) -> list[dict[str, Any]]:
        reader = TableReader(path=self.home / feed)
        live = reader.paths(reader.latest_version)
        return [
            {"path": name, "size_bytes": size, "reason": "removed"}
            for name, size in reader.data_files().items()
            if name not in live
        ]

    def _rename_in_newest_commit(self, where: str, names: dict[str, str]) -> None:
        """Name figures in the history of flights as Spark does; the other writer has names of its own."""
        path = sorted((self.flights / LOG).glob("*.json"))[-1]
        actions = [json.loads(line) for line in path.read_text().splitlines()]
        for action in actions:
            if "commitInfo" in action:
                said = action["commitInfo"][where]
                action["commitInfo"][where] = {names.get(name, name): value for name, value in said.items()}
        path.write_text("".join(json.dumps(action) + "\n" for action in actions))
