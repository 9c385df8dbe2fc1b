"""The checks of the quality gate: the published and the quarantined rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc

from demo import raw_data
from demo.checks.evidence import Check, Evidence
from demo.deliveries import BAD_TAIL_NUMBER, FAULTS, MIXED, ROTTEN
from demo.table_reader import TableReader, provenance, same_rows

QUARANTINE = Path("_deltaward", "quarantine")


def gate(evidence: Evidence) -> Iterator[Check]:
    """The quality gate."""
    run, table = evidence.run("gated"), evidence.tables["flights"]
    yield Check(name=f"gate: the run with {MIXED} succeeded", held=run["state"] == "success")
    delivered = raw_data.read_delivered(Path(evidence.facts["deliveries"][MIXED]))
    bad = pc.fill_null(pc.equal(delivered["tailnum"], BAD_TAIL_NUMBER), False)
    good_rows, bad_rows = delivered.filter(pc.invert(bad)), delivered.filter(bad)
    version = evidence.version("gated", "flights")
    rows = table.rows(version)
    published = rows.filter(pc.equal(rows["month"], delivered["month"][0].as_py()))
    yield Check(
        name="gate: the published rows are the good rows of the delivery",
        held=same_rows(published, good_rows),
        detail=f"{published.num_rows:,} of {delivered.num_rows:,} rows",
    )
    aside = quarantined(evidence)
    yield Check(
        name="gate: every bad row, and no other, is in quarantine",
        held=aside.num_rows > 0 and same_rows(aside.select(delivered.column_names), bad_rows),
        detail=f"{aside.num_rows} rows",
    )
    total = published.num_rows + aside.num_rows
    yield Check(
        name="gate: published and quarantined rows together are the delivery",
        held=total == delivered.num_rows,
        detail=f"{published.num_rows:,} + {aside.num_rows:,} of {delivered.num_rows:,}",
    )
    unclear = [row["_quarantine_reason"] for row in aside.to_pylist() if not _explained(row)]
    yield Check(
        name="gate: each quarantined row records its fault and its source",
        held=aside.num_rows > 0 and not unclear,
        detail="; ".join(map(str, unclear[:2])) or f"{len(reasons(evidence))} different reasons",
    )
    (entry,) = [entry for entry in table.history() if entry["version"] == version]
    recorded = provenance(entry).get("quality") or {}
    metrics = {
        "outcome": "quarantined",
        "rows": delivered.num_rows,
        "bad_rows": bad_rows.num_rows,
        "published_rows": good_rows.num_rows,
        "quarantined_rows": bad_rows.num_rows,
    }
    yield Check(
        name="gate: the commit records the outcome, and its metrics are right",
        held={name: recorded.get(name) for name in metrics} == metrics,
        detail=", ".join(f"{name} {recorded.get(name)}" for name in metrics),
    )
    failed = evidence.facts["quality"].get(ROTTEN) or {}
    wrong = raw_data.read_delivered(Path(evidence.facts["deliveries"][ROTTEN])).num_rows // 4
    yield Check(
        name=f"gate: {ROTTEN} failed for its share of bad rows",
        held=failed.get("outcome") == "failed" and abs(failed.get("bad_rows", 0) - wrong) <= 1,
        detail=f"{failed.get('bad_rows')} of {failed.get('rows')} rows",
    )
    for batch in (MIXED, ROTTEN):
        pages = [_path(evidence.facts["quality"].get(batch) or {}, kind) for kind in ("json", "html")]
        yield Check(
            name=f"gate: the reports on {batch} exist, and the page loads no external resources",
            held=all(page is not None and page.is_file() for page in pages) and _stands_alone(pages[1]),
        )


def quarantined(evidence: Evidence) -> pa.Table:
    """The quarantined rows; empty if the quarantine table does not exist."""
    reader = TableReader(path=evidence.tables["flights"].path / QUARANTINE)
    try:
        return reader.rows(reader.latest_version)
    except Exception:
        schema = evidence.tables["flights"].rows(0).schema
        return schema.append(pa.field("_quarantine_reason", pa.string())).empty_table()


def reasons(evidence: Evidence) -> Counter[str]:
    """The number of quarantined rows per reason."""
    return Counter(map(str, quarantined(evidence)["_quarantine_reason"].to_pylist()))


def _explained(row: dict[str, Any]) -> bool:
    """Whether the reason names exactly the faulty columns, and the row records its source and batch."""
    columns = {column for fault in FAULTS for column in fault}
    faults = [set(fault) for fault in FAULTS if all(str(row[name]) == it for name, it in fault.items())]
    named = {column for column in columns if column in (row["_quarantine_reason"] or "")}
    stated = (row["_quarantine_expectations"], row["_quarantine_source"], row["_quarantine_batch"])
    return named in faults and all(stated) and row["_quarantined_at"] is not None


def _path(quality: dict[str, Any], kind: str) -> Path | None:
    uri = quality.get(f"report_{kind}")
    return Path(unquote(urlsplit(uri).path)) if uri else None


def _stands_alone(page: Path | None) -> bool:
    html = page.read_text().lower() if page else ""
    return "<html" in html and not any(mark in html for mark in ("src=", "<link", "@import", "url("))
