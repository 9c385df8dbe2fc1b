"""The schemas of the ledger's three tables. They are public: docs/fleet.md describes each column."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

_UTC = pa.timestamp("us", tz="UTC")
_STRINGS = pa.list_(pa.string())
_LONGS = pa.list_(pa.int64())

SUB_SCORES: Final = pa.list_(
    pa.struct(
        [
            pa.field("name", pa.string()),
            pa.field("value", pa.float64()),
            pa.field("lost", pa.float64()),
            pa.field("reason", pa.string()),
        ]
    )
)

_IDENTITY = [
    pa.field("name", pa.string()),
    pa.field("uri", pa.string()),
    pa.field("table_id", pa.string()),
    pa.field("version", pa.int64()),
]

_FACTS = [
    pa.field("score", pa.float64()),
    pa.field("sub_scores", SUB_SCORES),
    pa.field("reasons", _STRINGS),
    pa.field("due", _STRINGS),
    pa.field("num_files", pa.int64()),
    pa.field("total_bytes", pa.int64()),
    pa.field("small_files", pa.int64()),
    pa.field("compactable_files", pa.int64()),
    pa.field("rows", pa.int64()),
    pa.field("deleted_rows", pa.int64()),
    pa.field("unclustered_bytes", pa.int64()),
    pa.field("log_tail_commits", pa.int64()),
    pa.field("checkpoint_version", pa.int64()),
    pa.field("expired_tombstones", pa.int64()),
    pa.field("expired_tombstone_bytes", pa.int64()),
    pa.field("size_histogram", _LONGS),
    pa.field("error_code", pa.string()),
    pa.field("error", pa.string()),
]

OBSERVATIONS: Final = pa.schema(
    [
        pa.field("day", pa.date32()),
        pa.field("observed_at", _UTC),
        pa.field("run_id", pa.string()),
        pa.field("unchanged", pa.bool_()),
        *_IDENTITY,
        *_FACTS,
        pa.field("commits_by_hour_of_week", _LONGS),
        pa.field("decisions", pa.string()),
        pa.field("compaction", pa.string()),
        pa.field("seen", pa.string()),
    ]
)
"""A row for each table and observation, appended, partitioned by day."""

RUNS: Final = pa.schema(
    [
        pa.field("day", pa.date32()),
        pa.field("started_at", _UTC),
        pa.field("finished_at", _UTC),
        pa.field("run_id", pa.string()),
        pa.field("plan_id", pa.int64()),
        *_IDENTITY,
        pa.field("verb", pa.string()),
        pa.field("outcome", pa.string()),
        pa.field("reason", pa.string()),
        pa.field("gain", pa.float64()),
        pa.field("predicted_files", pa.int64()),
        pa.field("predicted_bytes", pa.int64()),
        pa.field("predicted_cpu_seconds", pa.float64()),
        pa.field("actual_files", pa.int64()),
        pa.field("actual_bytes", pa.int64()),
        pa.field("files_added", pa.int64()),
        pa.field("bytes_added", pa.int64()),
        pa.field("version_to", pa.int64()),
        pa.field("commits", _LONGS),
        pa.field("requests", pa.int64()),
        pa.field("bytes_read", pa.int64()),
        pa.field("bytes_written", pa.int64()),
        pa.field("cpu_seconds", pa.float64()),
        pa.field("wall_seconds", pa.float64()),
        pa.field("peak_rss_bytes", pa.int64()),
        pa.field("money", pa.float64()),
        pa.field("job_id", pa.string()),
        pa.field("provenance", pa.string()),
        pa.field("log_url", pa.string()),
        pa.field("error_code", pa.string()),
        pa.field("error", pa.string()),
    ]
)
"""A row for each verb that was run or that was planned and turned out not to be needed, partitioned by day.

The `outcome` is `succeeded`, `failed`, `unknown`, `busy` (another job held the lease), `not_due`, `closed`
(the window was over), `superseded` (a later plan did the work) or, with the verb `circuit`, `closed_by_hand`.
"""

FLEET: Final = pa.schema(
    [
        *_IDENTITY,
        pa.field("observed_at", _UTC),
        *_FACTS,
        pa.field("owner", pa.string()),
        pa.field("visible_with", pa.string()),
        pa.field("mode", pa.string()),
        pa.field("managed", pa.bool_()),
        pa.field("failures", pa.int64()),
        pa.field("circuit_open", pa.bool_()),
        pa.field("last_error", pa.string()),
        pa.field("last_verb", pa.string()),
        pa.field("last_outcome", pa.string()),
        pa.field("last_run_at", _UTC),
        pa.field("commits_by_hour_of_week", _LONGS),
        pa.field("decisions", pa.string()),
        pa.field("compaction", pa.string()),
        pa.field("due_since", pa.string()),
        pa.field("seen", pa.string()),
    ]
)
"""A row for each table of the fleet, replaced as a whole."""

SCHEMAS: Final = {"observations": OBSERVATIONS, "runs": RUNS, "fleet": FLEET}
