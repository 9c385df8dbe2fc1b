"""The scenario: load, refuse, gate, correct, maintain, roll back and forward. It only records facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from demo import deliveries
from demo.dag_runs import DagRunner, RunRecord
from demo.display import Display
from demo.environment import USER
from demo.job_results import failure, job_result
from demo.layout import Layout, read_json, write_json
from demo.processes import DemoError
from demo.profiles import YEAR, Profile
from demo.sabotage import Sabotage

DAG_IDS = ("flights_etl", "flights_corrections", "table_maintenance", "table_rollback")
ETL, CORRECTIONS, MAINTENANCE, ROLLBACK = DAG_IDS


class Scenario:
    """Runs the scenario once and writes the facts."""

    def __init__(
        self, layout: Layout, *, profile: Profile, runner: DagRunner, display: Display, sabotage: Sabotage
    ) -> None:
        self._layout = layout
        self._profile = profile
        self._runner = runner
        self._display = display
        self._sabotage = sabotage
        self._facts: dict[str, Any] = {
            "profile": profile.name,
            "sabotage": list(sabotage.names),
            "person": USER,
            "tables": {feed: str(layout.table(feed)) for feed in profile.feeds},
            "deliveries": {},
            "quality": {},
            "runs": [],
            "points": {},
        }

    def play(self) -> None:
        """Run all parts in order. A failing run is recorded like any other."""
        self._load()
        self._refuse()
        self._gate()
        self._correct()
        self._maintain()
        self._roll_back()
        write_json(self._layout.facts, self._facts)

    def _load(self) -> None:
        months = self._profile.first_months
        first, last = _month(months[0]), _month(months[-1])
        with self._display.step(f"load {first} to {last} in one run"):
            conf = {"first_month": first, "last_month": last, "feeds": list(self._profile.feeds)}
            self._record("load", self._run(ETL, f"load-{first}-to-{last}", conf))
        self._note("first_months")
        for batch in _consecutive(self._sabotage.months_to_load(self._profile.single_months)):
            names = ", ".join(_month(month) for month in batch)
            with self._display.step(f"load {names} one by one, by a backfill"):
                runs = self._runner.backfill(
                    ETL, months=batch, conf={"feeds": list(self._profile.feeds)}, report=self._display.detail
                )
            for month, run in zip(batch, runs, strict=False):
                self._record("load", run, what=f"loaded {_month(month)}")
        self._sabotage.after_loading(self._layout, self._profile)
        self._note("loaded")

    def _refuse(self) -> None:
        month = self._profile.months[-1]
        batches = deliveries.write_bad_batches(self._layout.deliveries, month=month)
        self._deliver(batches)
        for name in batches:
            with self._display.step(f"deliver {_month(month)} again with faults ({name}): must be refused"):
                before = self._log_files("flights")
                run = self._run(ETL, f"bad-{name}", self._delivery(name, month))
                self._record("bad", run, batch=name, log_before=before, log_after=self._log_files("flights"))
            self._keep_quality(name, run)
        self._note("after_bad")

    def _gate(self) -> None:
        month = self._profile.months[-1]
        name = deliveries.MIXED
        self._deliver({name: deliveries.write_mixed_batch(self._layout.deliveries, month=month)})
        with self._display.step(f"deliver {_month(month)} again ({name}): the gate must quarantine them"):
            run = self._run(ETL, f"gated-{name}", self._delivery(name, month))
            self._record("gated", run)
        self._keep_quality(name, run)
        self._sabotage.after_gate(self._layout)
        self._note("gated")

    def _correct(self) -> None:
        path = deliveries.write_corrections(
            self._layout.deliveries, month=self._profile.months[-1], earlier_month=self._profile.months[0]
        )
        self._deliver({"corrections": path})
        with self._display.step("merge the late corrections"):
            self._record(
                "corrections", self._run(CORRECTIONS, "corrections", {"corrections": [path.as_uri()]})
            )
        self._note("corrected")

    def _maintain(self) -> None:
        with self._display.step("maintain every table"):
            run = self._run(
                MAINTENANCE, "maintain", {"tables": list(self._profile.feeds), "vacuum_preview": True}
            )
            self._record("maintenance", run)
        self._facts["vacuum_plans"] = self._vacuum_plans(run)
        self._facts["data_files"] = {
            feed: _data_files(self._layout.table(feed)) for feed in self._profile.feeds
        }
        self._note("maintained")

    def _roll_back(self) -> None:
        version = self._facts["points"]["loaded"]["flights"]
        with self._display.step(f"ask to restore flights to version {version}; {USER} rejects it"):
            before = self._log_files("flights")
            run = self._restore("rejected", version, answer="Reject")
            self._record("rejected", run, log_before=before, log_after=self._log_files("flights"))
        self._note("rejected")
        for point, target in (("rolled_back", "first_months"), ("forward", "maintained")):
            version = self._facts["points"][target]["flights"]
            with self._display.step(f"restore flights to version {version}; {USER} approves it"):
                self._record("rollback", self._restore(f"restore-to-{version}", version, answer="Approve"))
            self._note(point)

    def _restore(self, run_id: str, version: int, *, answer: str) -> RunRecord:
        conf = {"table": self._layout.table_uri("flights"), "version": version}
        return self._run(ROLLBACK, run_id, conf, answer=answer)

    def _run(self, dag_id: str, run_id: str, conf: dict[str, Any], *, answer: str | None = None) -> RunRecord:
        return self._runner.run(dag_id, run_id=run_id, conf=conf, report=self._display.detail, answer=answer)

    def _deliver(self, files: dict[str, Path]) -> None:
        self._facts["deliveries"] |= {name: str(path) for name, path in files.items()}

    def _delivery(self, name: str, month: int) -> dict[str, Any]:
        source = self._facts["deliveries"][name]
        return {"first_month": _month(month), "source": source, "feeds": ["flights"]}

    def _record(self, purpose: str, run: RunRecord, *, what: str = "", **more: Any) -> None:
        reason = failure(self._layout, run)
        self._facts["runs"].append({"purpose": purpose, **asdict(run), "reason": reason, **more})
        outcome = ", ".join(part for part in (what, run.state) if part)
        self._display.log(f"{run.dag_id} {run.run_id}: {outcome}" + (f" ({reason})" if reason else ""))

    def _keep_quality(self, name: str, run: RunRecord) -> None:
        result = job_result(self._layout, run, "load_flights") or {}
        quality = (result.get("output") or {}).get("quality")
        if quality:
            # The checks read files: a report in a bucket is a file of the server.
            reports = {key: uri for key, uri in quality.items() if key.startswith("report_") and uri}
            quality |= {key: self._layout.path_of(uri).as_uri() for key, uri in reports.items()}
        self._facts["quality"][name] = quality

    def _note(self, point: str) -> None:
        self._facts["points"][point] = {feed: self._version(feed) for feed in self._profile.feeds}

    def _version(self, feed: str) -> int:
        commits = [name for name in self._log_files(feed) if name[:20].isdigit() and name[20:] == ".json"]
        if not commits:
            raise DemoError(
                f"The table {feed} does not exist because its load failed. See {self._layout.logs / 'tasks'}."
            )
        return max(int(name[:20]) for name in commits)

    def _log_files(self, feed: str) -> list[str]:
        log = self._layout.table(feed) / "_delta_log"
        return sorted(path.name for path in log.iterdir()) if log.is_dir() else []

    def _vacuum_plans(self, run: RunRecord) -> dict[str, Any]:
        """The complete plans by table, from the result files of the vacuum tasks."""
        plans = {}
        tables = self._runner.result(run, "tables") or []
        for task in run.tasks:
            if task.task_id != "maintain.vacuum" or task.state != "success":
                continue
            summary = self._runner.result(run, task.task_id, map_index=task.map_index)
            result = read_json(self._layout.path_of(summary["result_uri"]))
            plans[tables[task.map_index]["name"]] = result["output"]["plan"]
        return plans


def _month(month: int) -> str:
    return f"{YEAR}-{month:02}"


def _consecutive(months: Sequence[int]) -> list[list[int]]:
    batches: list[list[int]] = []
    for month in months:
        if batches and batches[-1][-1] + 1 == month:
            batches[-1].append(month)
        else:
            batches.append([month])
    return batches


def _data_files(table: Path) -> dict[str, int]:
    return {
        path.relative_to(table).as_posix(): path.stat().st_size
        for path in sorted(table.rglob("*.parquet"))
        if not path.relative_to(table).as_posix().startswith("_")
    }
