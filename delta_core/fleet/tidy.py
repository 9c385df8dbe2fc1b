"""Keeping the ledger small: old days are deleted, small files compacted, and unneeded files vacuumed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from delta_core.errors import TableNotFoundError
from delta_core.fleet.ledger import Ledger
from delta_core.table.delta_table import DeltaTable

MANY_FILES: Final = 64
"""From so many files on, a table of the ledger is compacted."""


def tidy(ledger: Ledger, *, keep_days: int) -> dict[str, dict[str, Any]]:
    """Tidy the three tables of a ledger, and return what was done to each.

    Days that are older than `keep_days` are deleted. A table with at least 64 files is compacted and
    vacuumed. The history of a table of the ledger is not needed beyond its retention.

    Raises:
        DeltaError: the store fails, or another process tidies at the same time.
    """
    cutoff = ledger.today() - timedelta(days=keep_days)
    done: dict[str, dict[str, Any]] = {}
    for name in ("observations", "runs", "fleet"):
        options = ledger.options(name) or None
        try:
            table = DeltaTable(ledger.uri(name), storage_options=options, clock=ledger.clock)
        except TableNotFoundError:
            continue
        own = done[name] = {"deleted": False, "compacted": False, "vacuumed": 0}
        before = table.version()
        if name != "fleet":
            table.delete(f"day < DATE '{cutoff.isoformat()}'")
            own["deleted"] = table.version() != before
        # Each replacement of `fleet` leaves a file behind, so its history counts and not its files.
        files = table.version() if name == "fleet" else table.snapshot.files.num_files
        if files >= MANY_FILES:
            compacted = table.version()
            table.optimize.compact()
            own["compacted"] = table.version() != compacted
            own["vacuumed"] = len(table.vacuum(dry_run=False))
    return done
