"""Whatever becomes of a commit's one decisive request, the change is in the table exactly once.

The matrix: {lost, 500, 503, 409, never answered, doubled} x {before, after} the server acts x ten operations
x six stores; on S3 with DynamoDB once more for the commit file that follows the entry. A usual run draws
one operation for each fault of each store, and each operation at least once; `make soak-ambiguity` runs all.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.concurrency.ambiguity.arena import arena
from tests.concurrency.ambiguity.cells import STORES, cells_of, sample
from tests.concurrency.ambiguity.judge import Outcome
from tests.support.emulators.installation import require
from tests.support.emulators.places import PLACES
from tests.support.soak import SEED, SOAKING

pytestmark = [pytest.mark.extra]

CELLS_DRAWN = 12


@pytest.mark.parametrize("store", STORES)
def test_a_commit_takes_place_once(store: str, tmp_path: Path) -> None:
    for server in PLACES[store][1]:
        require(server)
    cells = cells_of(store)
    if not SOAKING:
        cells = sample(cells, CELLS_DRAWN, seed=f"{SEED} {store}")
    with arena(store, tmp_path) as place:
        found = place.run_all(cells)
    # One fault and a store that answers again: there is always a way to know, so *unknown* is no excuse.
    wrong = {str(cell): verdict for cell, verdict in found.items() if verdict.outcome is not Outcome.ONCE}
    assert not wrong, f"seed {SEED}: " + "\n".join(f"{cell}: {verdict}" for cell, verdict in wrong.items())
