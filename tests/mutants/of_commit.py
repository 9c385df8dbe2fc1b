"""Mutants of the commit loop, the conflict rules and the transaction."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

COMMITTER = "delta_core.transaction.committer:Committer"
RULES = "delta_core.transaction.conflict_checker"
GUARD = "delta_core.transaction.stale_writer_guard"
TRANSACTION = "delta_core.transaction.transaction:Transaction"
RESULT = "delta_core.transaction.commit_result"

LOOP_TESTS = "tests/unit/transaction/test_committer.py"
GUARD_TESTS = "tests/unit/transaction/test_stale_writer_guard.py"
TRANSACTION_TESTS = "tests/unit/transaction/test_transaction.py"
TIME_TESTS = "tests/unit/transaction/test_in_commit_time.py"
RULE_TESTS = "tests/unit/transaction/test_conflict_rules.py"
AMBIGUITY_TESTS = "tests/concurrency/test_ambiguous_writes.py"

MUTANTS = [
    Mutant(
        name="any commit read back is ours",
        target=f"{COMMITTER}._owner",
        edits=(("info.txn_id == self.request.txn_id", "True"),),
        killer=f"{LOOP_TESTS}::test_commit_moves_past_another_writer_after_checking_each_version",
    ),
    Mutant(
        name="the transaction id is not compared",
        target=f"{COMMITTER}._owner",
        edits=(("info.txn_id == self.request.txn_id", "False"),),
        killer=f"{LOOP_TESTS}::test_a_commit_that_the_store_gives_back_in_other_bytes_is_ours_by_its_id",
    ),
    Mutant(
        name="the next version is tried when nothing is found",
        target=f"{COMMITTER}._settle",
        edits=(
            ("            undecided = True\n", "            undecided = True\n            version += 1\n"),
        ),
        killer=f"{LOOP_TESTS}::test_lost_answers_end_in_exactly_one_commit",
    ),
    Mutant(
        name="a version is tried again with other bytes",
        target=f"{COMMITTER}._settle",
        edits=(
            (
                "            self._attempts += 1\n",
                "            self._attempts += 1\n"
                "            if self._attempts > 1:\n"
                "                data = data.replace(b'\"mine\"', b'\"mine-%d\"' % self._attempts)\n",
            ),
        ),
        killer=f"{LOOP_TESTS}::test_lost_answers_end_in_exactly_one_commit",
    ),
    Mutant(
        name="an unclear answer is forgotten",
        target=f"{COMMITTER}._settle",
        edits=(("                self._ambiguous = True\n                _log", "                _log"),),
        killer=f"{LOOP_TESTS}::test_refusal_after_an_unclear_attempt_is_not_definite",
    ),
    Mutant(
        name="an unclear answer is forgotten with the version",
        target=f"{COMMITTER}._run",
        edits=(
            (
                "            version = tail + 1\n",
                "            version = tail + 1\n            self._ambiguous = False\n",
            ),
        ),
        killer=f"{LOOP_TESTS}::test_ambiguity_sticks_when_the_version_moves_on",
    ),
    Mutant(
        name="exists without an object is a clear answer",
        target=f"{COMMITTER}._settle",
        edits=(
            ("SPURIOUS_EXISTS_TOTAL)\n                self._ambiguous = True\n", "SPURIOUS_EXISTS_TOTAL)\n"),
        ),
        killer=f"{LOOP_TESTS}::test_refusal_after_an_unclear_attempt_is_not_definite",
    ),
    Mutant(
        name="a version that cannot be read back is not there",
        target=f"{COMMITTER}._owner",
        edits=(('return self._unknown(version, f"Reading', 'return None and (f"Reading'),),
        killer=f"{LOOP_TESTS}::test_reads_that_keep_failing_leave_the_outcome_unknown",
    ),
    Mutant(
        name="a version is read back once",
        target=f"{COMMITTER}._read",
        edits=(("range(READ_BACK_TRIES - 1, -1, -1)", "range(1)"),),
        killer=f"{LOOP_TESTS}::test_reads_that_fail_for_a_while_are_repeated",
    ),
    Mutant(
        name="only the first winner is examined",
        target=f"{COMMITTER}._examine_to_tail",
        edits=(("outcome = self.request.examine(WinningCommit.of(version, actions))", "outcome = None"),),
        killer=f"{LOOP_TESTS}::test_commit_moves_past_another_writer_after_checking_each_version",
    ),
    Mutant(
        name="files go although the outcome is unknown",
        target=f"{RESULT}:may_discard_files",
        edits=(("isinstance(result, Conflict)", "not isinstance(result, Committed)"),),
        killer=f"{AMBIGUITY_TESTS}::test_unknown_outcome_keeps_the_files",
    ),
    Mutant(
        name="files that a lost commit names go",
        target=f"{RESULT}:may_discard_files",
        edits=((" and not result.files_referenced", ""),),
        killer=f"{GUARD_TESTS}::test_write_below_the_cleaned_up_log_is_reported_as_lost_and_keeps_its_files",
    ),
    Mutant(
        name="files of a success go",
        target="delta_core.transaction.owned_files:OwnedFiles.discard",
        edits=(("if not may_discard_files(result):", "if False:"),),
        killer=f"{TRANSACTION_TESTS}::TestDiscarding::test_only_definite_failures_delete",
    ),
    Mutant(
        name="a creator writes to a table that it has seen",
        target=f"{COMMITTER}._settle",
        edits=(("if self.guard.has_version_0:", "if False:"),),
        killer=f"{TRANSACTION_TESTS}::TestConflicts::test_a_creator_sends_nothing_where_the_table_is_there",
    ),
    Mutant(
        name="an old snapshot may write",
        target=f"{GUARD}:StaleWriterGuard.look",
        edits=(("if self.age_ms > max(self.log_retention_ms / 2, _YOUNG_MS):", "if False:"),),
        killer=f"{GUARD_TESTS}::test_snapshot_older_than_half_the_log_retention_is_refused_before_writing",
    ),
    Mutant(
        name="a commit below the tail stands",
        target=f"{GUARD}:StaleWriterGuard.after_put",
        edits=(("if is_listed or self._is_there(version - 1):", "if True:"),),
        killer=f"{GUARD_TESTS}::test_write_below_an_older_checkpoint_is_reported_as_lost",
    ),
    Mutant(
        name="a version that a listing lacks is gone",
        target=f"{GUARD}:StaleWriterGuard.after_put",
        edits=((" or self._is_there(version - 1)", ""), ("not self.store.consistent_listing", "False")),
        killer=f"{GUARD_TESTS}::test_a_version_that_a_listing_lacks_is_looked_up",
    ),
    Mutant(
        name="a table made anew is taken for the old one",
        target=f"{GUARD}:log_replaced",
        edits=((" == version_file)", " is not None)"),),
        killer=f"{TRANSACTION_TESTS}::TestTableMadeAnew::test_commit_is_refused_and_leaves_no_hole",
    ),
    Mutant(
        name="the key is not looked up before the work",
        target=f"{TRANSACTION}.commit",
        edits=(("found = already_applied(self.snapshot, self.properties.txn)", "found = None"),),
        killer=f"{TRANSACTION_TESTS}::TestIdempotency::test_key_is_written_and_then_found",
    ),
    Mutant(
        name="the key is not looked up at the rebase",
        target=f"{TRANSACTION}._examine",
        edits=(("found = covering(winner.transactions, self.properties.txn)", "found = None"),),
        killer=f"{TRANSACTION_TESTS}::TestIdempotency::test_twin_that_wins_the_race_is_found_at_the_rebase",
    ),
    Mutant(
        name="only the very version of a key counts",
        target="delta_core.transaction.idempotency:already_applied",
        edits=(("found.version >= key.version", "found.version == key.version"),),
        killer=f"{TRANSACTION_TESTS}::TestIdempotency::test_earlier_steps_count_as_applied",
    ),
    Mutant(
        name="the key is made of the try",
        target="delta_airflow.operators.provenance:idempotency_key",
        edits=(("task.map_index, task.run_id]", "task.map_index, task.run_id, task.try_number]"),),
        killer="tests/unit/jobs/test_task_key.py",
    ),
    Mutant(
        name="a rebase keeps the version that was read",
        target=f"{TRANSACTION}._stage",
        edits=(("read_version=version - 1", "read_version=self.read_version"),),
        killer=f"{TRANSACTION_TESTS}::test_rebase_updates_the_read_version_and_keeps_the_id",
    ),
    Mutant(
        name="an append-only table loses rows",
        target="delta_core.transaction.file_checks:require_consistent_files",
        edits=(("if before is not None and before.append_only:", "if False:"),),
        killer=f"{TRANSACTION_TESTS}::TestRefusals::test_append_only_table_keeps_its_rows",
    ),
    Mutant(
        name="what reads is a blind append",
        target="delta_core.transaction.read_set:TransactionFootprint.is_blind_append",
        edits=((" and self.reads.is_empty", ""),),
        killer=f"{TRANSACTION_TESTS}::test_reads_make_an_append_not_blind",
    ),
    Mutant(
        name="every commit of files is a rearrangement",
        target="delta_core.transaction.read_set:effective_isolation",
        edits=((" and not any(a.data_change for a in files)", ""),),
        killer=f"{TRANSACTION_TESTS}::TestConflicts::test_level_decides_about_blind_appends",
    ),
    Mutant(
        name="removed files are compared as they are spelled",
        target=f"{RULES}:delete_delete",
        edits=(("canonical_log_path(r.path)", "r.path"),),
        killer=f"{RULE_TESTS}::test_paths_spelled_differently_are_one_file",
    ),
    Mutant(
        name="a removed file may be added again",
        target=f"{RULES}:delete_read",
        edits=(("if back is not None:", "if False:"),),
        killer=f"{RULE_TESTS}::test_a_removed_file_is_not_added_again",
    ),
    Mutant(
        name="blind appends survive any change of the metadata",
        target=f"{RULES}:metadata_changed",
        edits=(("and _same_for_appends(transaction.base_metadata, winner.metadata)", "and True"),),
        killer=f"{RULE_TESTS}::test_pair_of_operations",
    ),
    Mutant(
        name="every append is blind",
        target=f"{RULES}:concurrent_append",
        edits=(("and winner.is_blind_append", "and winner.adds"),),
        killer=f"{RULE_TESTS}::test_pair_of_operations",
    ),
    Mutant(
        name="an append that a third has read is reordered",
        target="delta_core.transaction.reordering:WinnerExamination.examine_order",
        edits=(("if self._passed and not winner.is_blind_append and _changes_rows(winner):", "if False:"),),
        killer="tests/concurrency/test_reordering.py::test_an_append_that_another_has_read_is_not_reordered",
    ),
    Mutant(
        name="rows that were moved are forgotten",
        target="delta_core.transaction.reordering:WinnerExamination.examine",
        edits=(
            (
                "if any(not r.data_change and canonical_log_path(r.path) in read for r in winner.removes):",
                "if False:",
            ),
        ),
        killer="tests/concurrency/test_reordering.py::"
        "test_rows_that_a_rearrangement_moved_are_still_those_that_were_read[Serializable]",
    ),
    Mutant(
        name="files that a vacuum is deleting are used again",
        target="delta_core.maintenance.restore.apply:apply_restore",
        edits=((".reuse_files()", ""),),
        killer="tests/unit/maintenance/test_restore.py::test_a_vacuum_that_begins_meanwhile_stops_it",
    ),
    Mutant(
        name="a slow write is believed",
        target=f"{GUARD}:StaleWriterGuard.after_put",
        edits=(("if not self.is_blind and 0 <= self.age_ms <= min(", "if True or 0 <= self.age_ms <= min("),),
        killer=f"{GUARD_TESTS}::test_a_table_that_is_made_anew_meanwhile_gets_no_acknowledged_commit",
    ),
    Mutant(
        name="a lost write after an unclear one is a refusal",
        target="delta_core.transaction.committer:Committer._landed",
        edits=(("if self._ambiguous and self._attempts > 1:", "if False:"),),
        killer=f"{GUARD_TESTS}::test_a_lost_write_after_an_unclear_one_tells_nothing_of_that",
    ),
    Mutant(
        name="what cannot be understood is another's",
        target="delta_core.transaction.committer:Committer._owner",
        edits=(("unreadable = str(error)", "return self._unreadable(version, str(error))"),),
        killer=f"{LOOP_TESTS}::test_a_version_that_cannot_be_understood_may_be_ours",
    ),
    Mutant(
        name="a read holds whatever came after it",
        target="delta_core.transaction.serializable_read:verify_serializable",
        edits=(("if violation is not None:", "if False:"),),
        killer="tests/unit/transaction/test_serializable_read.py::test_rows_that_went_are_noticed",
    ),
    Mutant(
        name="the winners' row ids are given again",
        target="delta_core.transaction.row_ids:RowIds.after",
        edits=(("max((self.watermark, *theirs))", "self.watermark"),),
        killer="tests/unit/transaction/test_row_ids.py::test_whoever_comes_second_counts_on",
    ),
    Mutant(
        name="the winners' times are forgotten",
        target="delta_core.transaction.in_commit_time:InCommitTime.after",
        edits=(("if self.enables or own is None:", "if True:"),),
        killer=f"{TIME_TESTS}::test_whoever_comes_second_counts_on_from_the_winners",
    ),
    Mutant(
        name="old metadata brings old provenance back",
        target="delta_core.transaction.in_commit_time:settled_provenance",
        edits=(("if configuration == metadata.configuration:", "if True:"),),
        killer=f"{TIME_TESTS}::test_old_metadata_brings_no_old_answer_back",
    ),
    Mutant(
        name="the enabling commit trusts the time that it read",
        target="delta_core.transaction.in_commit_time:InCommitTime.stamp",
        edits=(("if self.enables and version - 1 != self.last_version:", "if False:"),),
        killer=f"{TIME_TESTS}::test_enabling_after_winners_exceeds_the_last_ones_file",
    ),
]
