"""The checks of maintenance and of the vacuum plans."""

from __future__ import annotations

from collections.abc import Iterator

from demo.checks.evidence import Check, Evidence, task_states
from demo.checks.skipping import typical_queries
from demo.table_reader import TableReader, same_rows

CLUSTERED = "flights"
STEPS: dict[str, tuple[str, ...]] = {
    "plan": (),
    "compact": (CLUSTERED,),
    "cluster": ("weather",),
    "verify": (),
    "checkpoint": (),
    "vacuum": (),
}
"""The steps for each table, with the tables that skip the step."""


def maintained(evidence: Evidence) -> Iterator[Check]:
    """Maintenance."""
    run = evidence.run("maintenance")
    yield Check(name="the maintenance run succeeded", held=run["state"] == "success", detail=run["state"])
    feeds = evidence.profile.feeds
    wrong = []
    for step, skipping in STEPS.items():
        states = sorted(map(str, task_states(run, f"maintain.{step}")))
        expected = sorted("skipped" if feed in skipping else "success" for feed in feeds)
        if states != expected:
            wrong.append(f"{step} {states or 'absent'}")
    yield Check(
        name="each maintenance task ran and succeeded for each table", held=not wrong, detail="; ".join(wrong)
    )
    for feed in feeds:
        table = evidence.tables[feed]
        was, now = evidence.version("corrected", feed), evidence.version("maintained", feed)
        rewritten = clustering if feed == CLUSTERED else compaction
        yield from rewritten(evidence, feed)
        yield Check(
            name=f"{feed}: maintenance kept the rows", held=same_rows(table.rows(was), table.rows(now))
        )
        changed = [
            version
            for version in range(was + 1, now + 1)
            for action in table.commit(version)
            for kind in ("add", "remove")
            if kind in action and action[kind]["dataChange"]
        ]
        yield Check(name=f"{feed}: maintenance recorded that no data changed", held=now > was and not changed)
        yield Check(
            name=f"{feed}: a checkpoint was written",
            held=table.checkpointed_version() is not None,
            detail=f"of version {table.checkpointed_version()}",
        )


def compaction(evidence: Evidence, feed: str) -> Iterator[Check]:
    """Checks that small files were compacted."""
    before, after = (_months(evidence, point, feed) for point in ("corrected", "maintained"))
    yield Check(
        name=f"{feed}: compaction left one file per month",
        held=len(before) > len(after) == len(set(after)) and set(after) == set(before),
        detail=f"{len(before)} files became {len(after)}",
    )


def clustering(evidence: Evidence, feed: str) -> Iterator[Check]:
    """Checks that clustering makes typical queries skip more files."""
    table = evidence.tables[feed]
    orders = [
        entry.get("operationParameters", {}).get("zOrderBy")
        for entry in table.history()
        if entry["operation"] == "OPTIMIZE" and entry["version"] <= evidence.version("maintained", feed)
    ]
    yield Check(
        name=f"{feed}: the history records the Z-order columns",
        held=len(orders) == 1 and orders[0] not in (None, "[]"),
        detail=f"zOrderBy {orders}",
    )
    for before, after in zip(
        typical_queries(evidence, "corrected"), typical_queries(evidence, "maintained"), strict=True
    ):
        yield Check(
            name=f"{feed}: after clustering, {before.query} skips a larger share of the files",
            held=after.share_skipped > before.share_skipped and after.bytes_read < before.bytes_read,
            detail=f"{before.skipped}, then {after.skipped}",
        )
        yield Check(
            name=f"{feed}: the files that {before.query} reads contain every row of the answer",
            held=before.rows_found == after.rows_found == before.rows_expected == after.rows_expected > 0,
            detail=f"{after.rows_found:,} rows",
        )


def vacuum_planned(evidence: Evidence) -> Iterator[Check]:
    """The vacuum plan."""
    for feed in evidence.profile.feeds:
        table = evidence.tables[feed]
        plan = evidence.facts["vacuum_plans"][feed]
        planned = {file["path"]: file["size_bytes"] for file in plan["files"]}
        live = table.paths(evidence.version("maintained", feed))
        listed = {path: size for path, size in evidence.facts["data_files"][feed].items() if path not in live}
        yield Check(
            name=f"{feed}: vacuum would delete exactly the files that are not live",
            held=planned == listed and bool(planned),
            detail=f"{len(planned)} files, {sum(planned.values()):,} bytes",
        )
        same = set(planned) == table.vacuumable(retention_hours=0)
        yield Check(name=f"{feed}: deltalake would vacuum the same files", held=same)
        protected = table.vacuumable(retention_hours=None)
        yield Check(
            name=f"{feed}: within the retention, every file is kept",
            held=not protected,
            detail=f"{len(protected)} files would be deleted",
        )
        yield Check(
            name=f"{feed}: the plan gives a reason for each file",
            held=all(file["reason"] for file in plan["files"]),
        )
        deleted = _deleted(evidence, table, feed)
        yield Check(name=f"{feed}: planning deleted nothing", held=not deleted, detail=", ".join(deleted[:3]))


def _months(evidence: Evidence, point: str, feed: str) -> list[int]:
    """The month of each file."""
    files = evidence.tables[feed].files(evidence.version(point, feed))
    return [file["partition"]["month"] for file in files]


def _deleted(evidence: Evidence, table: TableReader, feed: str) -> list[str]:
    return sorted(set(evidence.facts["data_files"][feed]) - set(table.data_files()))
