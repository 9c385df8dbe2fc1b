"""All seeded mutants that a single test kills, by name.

Those that only many histories or pairs of operations show are in `tests/simulation/test_mutants.py` and
`tests/concurrency/test_conflict_matrix.py`.
"""

from __future__ import annotations

from tests.mutants import of_cleanup, of_commit, of_feature_drop, of_leases, of_replay, of_stores

GROUPS = {
    "commit": of_commit.MUTANTS,
    "replay": of_replay.MUTANTS,
    "cleanup": of_cleanup.MUTANTS,
    "feature drop": of_feature_drop.MUTANTS,
    "leases": of_leases.MUTANTS,
    "stores": of_stores.MUTANTS,
}

MUTANTS = {mutant.name: mutant for group in GROUPS.values() for mutant in group}
