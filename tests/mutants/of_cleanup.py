"""Mutants of what deletes: vacuum, repair, log cleanup, and the checkpoint that a cleanup relies on."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

VACUUM = "delta_core.maintenance.vacuum"
FSCK = "delta_core.maintenance.fsck"
LOG_CLEANUP = "delta_core.checkpoint.log_cleanup"
CHECKPOINT = "delta_core.checkpoint.classic"

VACUUM_TESTS = "tests/unit/maintenance/test_vacuum.py"
VECTOR_TESTS = "tests/unit/maintenance/test_vacuum_vectors.py"
FSCK_TESTS = "tests/unit/maintenance/test_fsck.py"
CLEANUP_TESTS = "tests/unit/checkpoint/test_log_cleanup.py"
CHECKPOINT_TESTS = "tests/unit/checkpoint/test_classic.py"
OTHER_WRITERS_TESTS = "tests/unit/checkpoint/test_other_writers.py"

MUTANTS = [
    Mutant(
        name="vacuum takes young files",
        target=f"{VACUUM}.plan:plan_vacuum",
        edits=(("info.modified_ms < cutoff_ms and ", ""),),
        killer=f"{VACUUM_TESTS}::test_young_files_stay_even_when_the_log_does_not_know_them",
    ),
    Mutant(
        name="vacuum takes files removed a moment ago",
        target=f"{VACUUM}.protected:keys_to_keep",
        edits=(("named_keys(snapshot.tombstones(since_ms=cutoff_ms), root_uri=root_uri)", "set()"),),
        killer=f"{VACUUM_TESTS}::test_a_file_removed_within_the_retention_stays_however_old_it_is",
    ),
    Mutant(
        name="vacuum takes files whose tombstones have expired within a longer retention",
        target=f"{VACUUM}.protected:LoggedRemoves.keys",
        edits=(("if isinstance(action, RemoveFile):", "if False:"),),
        killer=f"{VACUUM_TESTS}::test_a_longer_retention_looks_into_the_log_when_tombstones_are_gone",
    ),
    Mutant(
        name="vacuum takes what was committed while it listed",
        target=f"{VACUUM}.plan:plan_vacuum",
        edits=(("latest = snapshot.refresh()", "latest = snapshot"),),
        killer=f"{VACUUM_TESTS}::test_a_file_committed_while_the_files_are_listed_is_not_planned",
    ),
    Mutant(
        name="vacuum takes what came back since the plan",
        target=f"{VACUUM}.apply:_Deletion.run",
        edits=(("not is_protected(file.path, keep) and ", ""),),
        killer=f"{VACUUM_TESTS}::test_a_file_that_a_restore_brought_back_is_kept",
    ),
    Mutant(
        name="vacuum trusts this machine's clock",
        target=f"{VACUUM}.apply:_cutoff_by_store_time",
        edits=(
            (
                "min(plan.cutoff_ms, plan.retention.cutoff_ms(store_now_ms))",
                "plan.cutoff_ms",
            ),
        ),
        killer=f"{VACUUM_TESTS}::test_a_store_whose_clock_is_behind_deletes_nothing_too_young",
    ),
    Mutant(
        name="vacuum takes what was written anew",
        target=f"{VACUUM}.task:delete_files",
        edits=(("if (found.size_bytes, found.modified_ms) != (size_bytes, modified_ms):", "if False:"),),
        killer=f"{VACUUM_TESTS}::test_a_file_that_was_written_anew_is_kept",
    ),
    Mutant(
        name="a short retention needs no second word",
        target=f"{VACUUM}.retention:choose_retention",
        edits=(("not enforce_retention and force", "not enforce_retention or force"),),
        killer=f"{VACUUM_TESTS}::test_a_short_retention_needs_both_flags",
    ),
    Mutant(
        name="the table's own retention is not asked",
        target=f"{VACUUM}.retention:choose_retention",
        edits=(("max(properties.deleted_file_retention_ms, FLOOR_MS)", "FLOOR_MS"),),
        killer=f"{VACUUM_TESTS}::test_a_longer_table_retention_is_protected_too",
    ),
    Mutant(
        name="clocks do not differ",
        target=f"{VACUUM}.retention:Retention.cutoff_ms",
        edits=((" - self.margin_ms", ""),),
        killer=f"{VACUUM_TESTS}::test_files_close_to_the_limit_stay",
    ),
    Mutant(
        name="vacuum takes deletion vectors",
        target=f"{VACUUM}.vectors:named_keys",
        edits=(("if vectors.null_count == len(vectors):", "if True:"),),
        killer=f"{VECTOR_TESTS}::test_vectors_of_live_files_stay",
    ),
    Mutant(
        name="vacuum takes the vectors of a version within a longer retention",
        target=f"{VACUUM}.protected:removed_keys",
        edits=((" | vector_keys(remove.deletion_vector, root_uri=root_uri)", ""),),
        killer=f"{VECTOR_TESTS}::test_a_longer_retention_finds_vectors_in_the_log",
    ),
    Mutant(
        name="vacuum takes change data that was committed late",
        target=f"{VACUUM}.plan:plan_vacuum",
        edits=(("if any(kind is FileKind.CHANGE_DATA for _, kind in unpinned):", "if False:"),),
        killer=f"{VECTOR_TESTS}::test_change_data_that_was_committed_late_stays",
    ),
    Mutant(
        name="vacuum takes hidden files",
        target=f"{VACUUM}.listing:classify",
        edits=(('if name.startswith(("_", ".")):', "if False:"),),
        killer=f"{VACUUM_TESTS}::test_names_decide_what_is_looked_at",
    ),
    Mutant(
        name="vacuum goes by one spelling",
        target=f"{VACUUM}.path_identity:_keys",
        edits=(('if "%" in raw or "//" in raw or "\\\\" in raw:', "if False:"),),
        killer=f"{VACUUM_TESTS}::test_every_spelling_of_a_live_path_protects_its_file",
    ),
    Mutant(
        name="vacuum goes by one way to write an accent",
        target=f"{VACUUM}.path_identity:listed_key",
        edits=(
            (
                'store_path if store_path.isascii() else unicodedata.normalize("NFC", store_path)',
                "store_path",
            ),
        ),
        killer=f"{VACUUM_TESTS}::test_every_spelling_of_a_live_path_protects_its_file",
    ),
    Mutant(
        name="vacuum makes do with half a listing",
        target=f"{VACUUM}.plan:plan_vacuum",
        edits=(
            (
                "    listed = list(listed_files(snapshot))\n",
                "    listed = []\n"
                "    try:\n"
                "        for one in listed_files(snapshot):\n"
                "            listed.append(one)\n"
                "    except Exception:\n"
                "        pass\n",
            ),
        ),
        killer=f"{VACUUM_TESTS}::test_a_listing_that_fails_plans_nothing",
    ),
    Mutant(
        name="vacuum goes on when a deletion fails",
        target=f"{VACUUM}.task:delete_files",
        edits=(
            (
                "        store.delete(path)\n",
                "        try:\n"
                "            store.delete(path)\n"
                "        except Exception:\n"
                "            continue\n",
            ),
        ),
        killer=f"{VACUUM_TESTS}::test_a_deletion_that_fails_ends_the_vacuum_and_is_recorded",
    ),
    Mutant(
        name="a plan fits any table",
        target=f"{VACUUM}.apply:apply_vacuum",
        edits=(("if latest.metadata.id != plan.table_id:", "if False:"),),
        killer=f"{VACUUM_TESTS}::test_a_plan_for_another_table_is_refused",
    ),
    Mutant(
        name="an unknown feature does not matter to vacuum",
        target=f"{VACUUM}.plan:plan_vacuum",
        edits=(
            ('    snapshot.require_writable(surface=Surface.VACUUM, operation="vacuum the table")\n', ""),
            ('    latest.require_writable(surface=Surface.VACUUM, operation="vacuum the table")\n', ""),
        ),
        killer=f"{VACUUM_TESTS}::test_an_unknown_writer_feature_is_refused",
    ),
    Mutant(
        name="links are followed",
        target="delta_core.storage.local:LocalLogStore.walk",
        edits=(
            ("entry.is_dir(follow_symlinks=False)", "entry.is_dir()"),
            ("entry.is_file(follow_symlinks=False)", "entry.is_file()"),
        ),
        killer=f"{VACUUM_TESTS}::test_links_are_neither_followed_nor_deleted",
    ),
    Mutant(
        name="a deletion goes through a link",
        target="delta_core.storage.local_walk:open_directory",
        edits=((" | os.O_NOFOLLOW", ""),),
        killer=f"{VACUUM_TESTS}::test_links_are_neither_followed_nor_deleted",
    ),
    Mutant(
        name="log cleanup takes the commit of the version that it keeps",
        target=f"{LOG_CLEANUP}:cleanup_expired_logs",
        edits=(("if path.version < kept or", "if path.version <= kept or"),),
        killer=f"{CLEANUP_TESTS}::test_everything_before_the_cutoff_checkpoint_goes",
    ),
    Mutant(
        name="log cleanup starts from the newest checkpoint",
        target=f"{LOG_CLEANUP}:cleanup_expired_logs",
        edits=(("item.version <= cutoff_version and ", ""),),
        killer=f"{CLEANUP_TESTS}::test_everything_before_the_cutoff_checkpoint_goes",
    ),
    Mutant(
        name="log cleanup needs no checkpoint",
        target=f"{LOG_CLEANUP}:cleanup_expired_logs",
        edits=(
            (
                "        None,\n    )\n    if kept is None or",
                "        cutoff_version,\n    )\n    if kept is None or",
            ),
        ),
        killer=f"{CLEANUP_TESTS}::test_nothing_goes_without_a_checkpoint_before_the_cutoff",
    ),
    Mutant(
        name="log cleanup relies on a checkpoint that nobody has read",
        target=f"{LOG_CLEANUP}:cleanup_expired_logs",
        edits=((" and _is_sound(snapshot, item)", ""),),
        killer=f"{CLEANUP_TESTS}::test_a_damaged_checkpoint_is_not_relied_on",
    ),
    Mutant(
        name="log cleanup reads the footer of a checkpoint alone",
        target=f"{LOG_CLEANUP}:_is_sound",
        edits=(("part.decode_all()", "pass"),),
        killer=f"{CLEANUP_TESTS}::test_a_checkpoint_whose_files_cannot_be_read_is_not_relied_on",
    ),
    Mutant(
        name="log cleanup relies on a checkpoint whose sidecars it does not look at",
        target=f"{LOG_CLEANUP}:_is_sound",
        edits=(("(*reader.parts, *reader.file_parts)", "reader.parts"),),
        killer="tests/unit/checkpoint/test_v2.py::test_a_v2_checkpoint_whose_sidecar_is_damaged_is_not_relied_on",
    ),
    Mutant(
        name="log cleanup takes sidecars",
        target=f"{LOG_CLEANUP}:cleanup_expired_logs",
        edits=(
            ("store.list_directory(LOG_DIRECTORY)", "store.walk(LOG_DIRECTORY)"),
            (
                "        if path is None:\n            continue\n",
                "        if path is None:\n"
                '            if "/_sidecars/" in info.path:\n'
                "                files.append(info)\n"
                "            continue\n",
            ),
        ),
        killer=f"{CLEANUP_TESTS}::test_a_checkpoint_with_sidecars_that_are_gone_is_not_relied_on",
    ),
    Mutant(
        name="log cleanup takes names that it does not know",
        target=f"{LOG_CLEANUP}:cleanup_expired_logs",
        edits=(
            (
                "        if path is None:\n            continue\n",
                "        if path is None:\n            files.append(info)\n            continue\n",
            ),
        ),
        killer=f"{CLEANUP_TESTS}::test_everything_before_the_cutoff_checkpoint_goes",
    ),
    Mutant(
        name="a compaction of the kept version stays",
        target=f"{LOG_CLEANUP}:cleanup_expired_logs",
        edits=((" or (is_compacted and path.version == kept)", ""),),
        killer=f"{CLEANUP_TESTS}::test_everything_before_the_cutoff_checkpoint_goes",
    ),
    Mutant(
        name="a dry run deletes",
        target=f"{LOG_CLEANUP}:cleanup_expired_logs",
        edits=(
            ("    if not dry_run:\n        for info in files:", "    if True:\n        for info in files:"),
        ),
        killer=f"{CLEANUP_TESTS}::test_everything_before_the_cutoff_checkpoint_goes",
    ),
    Mutant(
        name="log cleanup trusts this machine's clock",
        target=f"{LOG_CLEANUP}:cleanup_expired_logs",
        edits=((", _store_time_ms(listing))", ", 1 << 62)"),),
        killer=f"{CLEANUP_TESTS}::test_a_clock_that_is_ahead_makes_no_version_old",
    ),
    Mutant(
        name="a checkpoint is not read back",
        target=f"{CHECKPOINT}:_read_back",
        edits=(("        cause = contents.difference(snapshot)\n", "        cause = None\n"),),
        killer=f"{CHECKPOINT_TESTS}::test_what_does_not_verify_is_deleted",
    ),
    Mutant(
        name="a checkpoint that is wrong stays",
        target=f"{CHECKPOINT}:_read_back",
        edits=((" and delete_unchanged(store, found)", ""),),
        killer=f"{CHECKPOINT_TESTS}::test_what_does_not_verify_is_deleted",
    ),
    Mutant(
        name="a wrong checkpoint is deleted though the log needs it",
        target=f"{CHECKPOINT}:_read_back",
        edits=(("unneeded = latest is not None and (", "unneeded = True or ("),),
        killer=f"{OTHER_WRITERS_TESTS}::test_a_wrong_one_goes_only_where_the_log_is_read_without_it",
    ),
    Mutant(
        name="another writer's checkpoint is deleted",
        target=f"{CHECKPOINT}:_read_back",
        edits=(("is_ours = found.size_bytes == written.size_bytes", "is_ours = True"),),
        killer=f"{OTHER_WRITERS_TESTS}::test_what_another_writer_has_put_there_is_never_deleted",
    ),
    Mutant(
        name="a checkpoint that was replaced since is deleted",
        target="delta_core.checkpoint.read_back:delete_unchanged",
        edits=(("if found != info or found.etag != info.etag:", "if False:"),),
        killer=f"{OTHER_WRITERS_TESTS}::test_one_that_is_replaced_while_it_is_judged_is_not_deleted",
    ),
    Mutant(
        name="a checkpoint replaces another",
        target="delta_core.checkpoint.create_only:_create",
        edits=(("store.put_if_absent(path, data)", "store.put(path, data)"),),
        killer=f"{OTHER_WRITERS_TESTS}::test_a_checkpoint_that_is_there_stays",
    ),
    Mutant(
        name="a streamed checkpoint replaces another",
        target="delta_core.checkpoint.create_only:created",
        edits=(("elif _is_there(store, path):", "elif False:"),),
        killer=f"{OTHER_WRITERS_TESTS}::test_a_checkpoint_that_is_there_stays",
    ),
    Mutant(
        name="a checkpoint of a table that was replaced is written",
        target=f"{CHECKPOINT}:_require_own_log",
        edits=(("if replaced is not None:", "if False:"),),
        killer=f"{OTHER_WRITERS_TESTS}::test_the_checkpoint_of_a_table_made_anew_stays",
    ),
    Mutant(
        name="a checkpoint stays in a table that was replaced meanwhile",
        target=f"{CHECKPOINT}:_read_back",
        edits=(("    replaced = _other_log(snapshot)\n", "    replaced = None\n"),),
        killer=f"{OTHER_WRITERS_TESTS}::test_a_table_dropped_and_made_anew_meanwhile_gets_no_checkpoint",
    ),
    Mutant(
        name="a checkpoint is written against its checksum",
        target="delta_core.checkpoint.own_log:require_as_its_checksum_says",
        edits=(("if snapshot.checksum_discrepancies:", "if False:"),),
        killer="tests/unit/log/test_checksum.py::test_what_differs_is_said_and_no_checkpoint_is_written",
    ),
    Mutant(
        name="the hint goes back to an older checkpoint",
        target="delta_core.checkpoint.hint:point_hint_to",
        edits=(("if later and earlier is not None and", "if False and earlier is not None and"),),
        killer=f"{CHECKPOINT_TESTS}::test_a_checkpoint_of_an_older_version_leaves_the_hint",
    ),
    Mutant(
        name="a repair takes a store's failure for a missing file",
        target=f"{FSCK}.presence:_has",
        edits=(("except ObjectNotFoundError:", "except Exception:"),),
        killer=f"{FSCK_TESTS}::test_a_failure_of_the_store_is_no_missing_file",
    ),
    Mutant(
        name="a repair does not ask a store that lags again",
        target=f"{FSCK}.presence:_gone_of",
        edits=(("() if store.consistent_listing else RETRY_PAUSES_SECONDS", "()"),),
        killer=f"{FSCK_TESTS}::test_a_store_that_lags_is_asked_again",
    ),
    Mutant(
        name="a repair takes out what came back since the plan",
        target=f"{FSCK}.apply:_still_missing",
        edits=(("path in found and found[path].is_sure", "True"),),
        killer=f"{FSCK_TESTS}::test_a_file_that_came_back_stays",
    ),
    Mutant(
        name="a repair takes out what it may not look at",
        target=f"{FSCK}.plan:plan_fsck",
        edits=(("path in lost and lost[path].is_sure", "path in lost"),),
        killer=f"{FSCK_TESTS}::test_links_are_followed_as_far_as_they_may_be",
    ),
    Mutant(
        name="a repair takes a disk that is not mounted for an empty one",
        target=f"{FSCK}.presence:absences",
        edits=(("if next(iter(root.walk()), None) is None:", "if False:"),),
        killer=f"{FSCK_TESTS}::test_nothing_is_gone_from_a_root_that_is_not_there",
    ),
]
