"""Mutants of what takes a table feature away, and of what keeps the history behind it together."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

DROP = "delta_core.maintenance.feature_drop"
PROTECTED = "delta_core.checkpoint.protected_log"

DROP_TESTS = "tests/unit/maintenance/test_feature_drop.py"
COLUMN_TESTS = "tests/unit/maintenance/test_feature_drop_columns.py"
MEANWHILE_TESTS = "tests/unit/maintenance/test_feature_drop_refusals.py"
CLONE_TESTS = "tests/unit/maintenance/test_shallow_clone_rewriting.py"
HISTORY_TESTS = "tests/unit/maintenance/test_feature_drop_history.py"
PROTECTED_TESTS = "tests/unit/checkpoint/test_protected_log.py"
SYNC_TESTS = "tests/unit/dml/test_sync_identity.py"

MUTANTS = [
    Mutant(
        name="a drop does not look at who committed meanwhile",
        target=f"{DROP}.apply:_attempt",
        edits=(("only_next=True", "only_next=False"),),
        killer=f"{MEANWHILE_TESTS}::test_who_commits_meanwhile_is_looked_at",
    ),
    Mutant(
        name="a drop begins before it knows that it may open the files",
        target=f"{DROP}.apply:drop_feature",
        edits=(("require_reach(run, latest)", "pass"),),
        killer=f"{CLONE_TESTS}::test_a_drop_that_cannot_go_on_does_not_begin[deletionVectors]",
    ),
    Mutant(
        name="no checkpoint bars the way to what was dropped",
        target=f"{DROP}.apply:_attempt",
        edits=(("latest = checkpointed(latest)", "pass"),),
        killer=f"{DROP_TESTS}::test_deletion_vectors_are_purged_and_a_checkpoint_bars_the_way_to_them",
    ),
    Mutant(
        name="the last version before a drop is not protected",
        target=f"{DROP}.apply:_attempt",
        edits=(("version=latest.version + 1", "version=latest.version"),),
        killer=f"{DROP_TESTS}::test_a_peer_reads_and_writes_on_and_every_version_stays[deletionVectors]",
    ),
    Mutant(
        name="files that came back without their vectors stay",
        target=f"{DROP}.preparation:without_vectors",
        edits=(("if revived:", "if False:"),),
        killer=f"{DROP_TESTS}::test_a_file_that_came_back_without_its_vector_is_written_anew",
    ),
    Mutant(
        name="vectors that older versions need get no tombstones",
        target=f"{DROP}.preparation:without_vectors",
        edits=(("if unknown:", "if False:"), ("return bool(unknown)", "return False")),
        killer=f"{DROP_TESTS}::test_a_vacuum_by_who_knows_no_vectors_leaves_those_that_older_versions_need",
    ),
    Mutant(
        name="the history behind the oldest version is not looked at",
        target=f"{DROP}.history:History._look",
        edits=(("last = commit.version", "pass"),),
        killer=f"{HISTORY_TESTS}::TestCleanSince::test_versions_are_judged_one_by_one",
    ),
    Mutant(
        name="what a checkpoint alone tells of the oldest version is no trace",
        target=f"{DROP}.history:_Past.of",
        edits=(("past._begin(oldest)", "pass"),),
        killer=f"{HISTORY_TESTS}::TestCleanSince::test_a_vector_that_only_a_checkpoint_tells",
    ),
    Mutant(
        name="history goes without waiting",
        target=f"{DROP}.truncation:truncate_history",
        edits=((" or run.clock.now_ms() < due_ms", ""), ("retention_ms=retention_ms", "retention_ms=0")),
        killer=f"{HISTORY_TESTS}::test_first_it_says_when_then_the_history_goes",
    ),
    Mutant(
        name="files keep the physical names of partitions without a mapping",
        target=f"{DROP}.unmapped_files:_rewrite",
        edits=(("{names[name]: value", "{name: value"),),
        killer=f"{COLUMN_TESTS}::TestMappedColumns::test_files_get_the_columns_own_names",
    ),
    Mutant(
        name="a protected log is cut anywhere",
        target=f"{PROTECTED}:may_cut_at",
        edits=(("if version >= protected_before(snapshot):", "if True:"),),
        killer=f"{PROTECTED_TESTS}::test_nothing_goes_where_one_is_not_known",
    ),
    Mutant(
        name="protocols that only a checkpoint tells do not count",
        target=f"{PROTECTED}:_protocols",
        edits=(("if files.version <= version:", "if False:"),),
        killer=f"{PROTECTED_TESTS}::test_a_first_protocol_that_is_in_a_checkpoint_alone_counts",
    ),
    Mutant(
        name="SYNC IDENTITY passes over rows that come meanwhile",
        target="delta_core.dml.definition.identity:sync_identity",
        edits=(("reads_rows=True", "reads_rows=False"),),
        killer=f"{SYNC_TESTS}::test_rows_that_are_added_meanwhile_conflict",
    ),
]
