"""Mutants of what makes a version out of the log's files."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

TAIL = "delta_core.replay.tail"
STATE = "delta_core.replay.state"
OPEN_LOG = "delta_core.snapshot.open_log"
SEGMENT = "delta_core.log.log_segment"
CHECKPOINT = "delta_core.log.checkpoint_reader"

REPLAY_TESTS = "tests/unit/replay/test_replay.py"
SEGMENT_TESTS = "tests/unit/log/test_log_segment.py"
COMPACTION_TESTS = "tests/unit/log/test_log_compaction.py"
V2_TESTS = "tests/unit/log/test_v2_checkpoint.py"
SNAPSHOT_TESTS = "tests/unit/snapshot/test_snapshot.py"

DAMAGED_SIDECAR = f"{V2_TESTS}::test_a_checkpoint_with_a_damaged_sidecar_is_passed_over"
LAST_WORD = f"{REPLAY_TESTS}::test_the_last_word_on_an_application_and_on_a_domain_stands"
MODEL = f"{REPLAY_TESTS}::test_random_histories_equal_a_model"

MUTANTS = [
    Mutant(
        name="commits are replayed from the newest",
        target=f"{TAIL}:replay_tail",
        edits=(("for commit in commits:", "for commit in reversed(list(commits)):"),),
        killer=LAST_WORD,
    ),
    Mutant(
        name="a remove hides no add",
        target=f"{TAIL}:replay_tail",
        edits=(("tail.adds.pop(key, None)", "pass"),),
        killer=MODEL,
    ),
    Mutant(
        name="an add revives nothing",
        target=f"{TAIL}:replay_tail",
        edits=(("tail.removes.pop(key, None)", "pass"),),
        killer=MODEL,
    ),
    Mutant(
        name="a remove hides the file with any deletion vector",
        target=f"{TAIL}:file_key",
        edits=(('dv_unique_id(fields.get("deletionVector")) or ""', '""'),),
        killer=MODEL,
    ),
    Mutant(
        name="deletion vectors in a checkpoint are all one",
        target="delta_core.replay.live_files:_unique_id",
        edits=(("if vector is None:", "if True:"),),
        killer=f"{REPLAY_TESTS}::test_a_deletion_vector_tells_files_of_a_checkpoint_apart",
    ),
    Mutant(
        name="the place of a deletion vector in its file is ignored",
        target="delta_core.replay.live_files:_unique_id",
        edits=(('base if vector["offset"] is None else', "base if True else"),),
        killer=f"{REPLAY_TESTS}::test_a_deletion_vector_tells_files_of_a_checkpoint_apart",
    ),
    Mutant(
        name="paths are compared as they are spelled",
        target=f"{TAIL}:file_key",
        edits=(('canonical_log_path(fields["path"])', 'fields["path"]'),),
        killer=f"{REPLAY_TESTS}::test_other_spellings_of_a_path_remove_it",
    ),
    Mutant(
        name="the first protocol of the commits stands",
        target=f"{OPEN_LOG}:latest_protocol_and_metadata",
        edits=(("protocol or found[0]", "found[0] or protocol"),),
        killer=f"{SNAPSHOT_TESTS}::test_protocol_and_metadata_change",
    ),
    Mutant(
        name="the first metadata of the commits stands",
        target=f"{OPEN_LOG}:latest_protocol_and_metadata",
        edits=(("metadata or found[1]", "found[1] or metadata"),),
        killer=f"{SNAPSHOT_TESTS}::test_protocol_and_metadata_change",
    ),
    Mutant(
        name="the first step of an application stands",
        target=f"{TAIL}:replay_tail",
        edits=(
            (
                "tail.transactions[action.app_id] = action",
                "tail.transactions.setdefault(action.app_id, action)",
            ),
        ),
        killer=LAST_WORD,
    ),
    Mutant(
        name="the first word on a domain stands",
        target=f"{TAIL}:replay_tail",
        edits=(
            (
                "tail.domain_metadata[action.domain] = action",
                "tail.domain_metadata.setdefault(action.domain, action)",
            ),
        ),
        killer=LAST_WORD,
    ),
    Mutant(
        name="the checkpoint's transactions stand against later ones",
        target=f"{STATE}:ReplayState.apply",
        edits=(("{**self.transactions, **tail.transactions}", "{**tail.transactions, **self.transactions}"),),
        killer=f"{REPLAY_TESTS}::test_transactions_and_domains",
    ),
    Mutant(
        name="a domain that was removed stays",
        target=f"{STATE}:_live_domains",
        edits=((" if not domain.removed", ""),),
        killer=f"{REPLAY_TESTS}::test_transactions_and_domains",
    ),
    Mutant(
        name="a file may be twice in a checkpoint",
        target=f"{STATE}:build_state",
        edits=(("if checkpoint is not None and path is not None:", "if False:"),),
        killer="tests/unit/log/test_hostile_checkpoint.py::test_a_file_twice",
    ),
    Mutant(
        name="the hint is trusted",
        target=f"{SEGMENT}:build_segment",
        edits=(("if from_version and not _usable(", "if False and not _usable("),),
        killer=f"{SEGMENT_TESTS}::test_the_hint_is_only_a_hint",
    ),
    Mutant(
        name="a gap makes a shorter table",
        target=f"{SEGMENT}:_select",
        edits=(
            (
                "        raise _MissingCommits(list(islice(gone, MAX_LOOKUPS)), count)\n",
                "        target = next(gone) - 1\n",
            ),
        ),
        killer=f"{SEGMENT_TESTS}::test_a_gap_is_never_a_shorter_table",
    ),
    Mutant(
        name="a checkpoint of a later version is taken",
        target=f"{SEGMENT}:_usable",
        edits=(("(target is None or item.version <= target) and ", ""),),
        killer=f"{SEGMENT_TESTS}::test_newest_checkpoint_at_or_before_the_version",
    ),
    Mutant(
        name="a table made anew is refreshed",
        target=f"{SEGMENT}:extend_segment",
        edits=((" or (segment.version_file is not None and own.info != segment.version_file)", ""),),
        killer=f"{SEGMENT_TESTS}::test_a_replaced_table_is_read_anew",
    ),
    Mutant(
        name="a refresh passes over a gap",
        target=f"{SEGMENT}:extend_segment",
        edits=(
            ("if len(found) != latest - segment.version + 1 or", "if"),
            (
                "newer = tuple(found[version] for version in range(segment.version + 1, latest + 1))",
                "newer = tuple(found[version] for version in sorted(found) if version > segment.version)",
            ),
        ),
        killer=f"{SEGMENT_TESTS}::test_extending",
    ),
    Mutant(
        name="a stale listing is the whole log",
        target=f"{SEGMENT}:_with_unlisted_tail",
        edits=(("while (found := commit_file(store, version + 1)) is not None:", "while found := None:"),),
        killer=f"{SEGMENT_TESTS}::test_a_stale_tail_is_found_by_name",
    ),
    Mutant(
        name="a name that a listing skips is not looked up",
        target="delta_core.log.listing:_between",
        edits=(("if commit is None:", "if True:"),),
        killer=f"{SEGMENT_TESTS}::test_a_directory_that_changes_while_it_is_read_has_no_holes",
    ),
    Mutant(
        name="the version that is extended is not looked up",
        target="delta_core.log.listing:with_commits",
        edits=(("if found is not None:", "if False:"),),
        killer=f"{SEGMENT_TESTS}::test_a_stale_tail_is_found_by_name",
    ),
    Mutant(
        name="what lands while a directory is read is a hole",
        target="delta_core.log.listing:may_leave_out",
        edits=(("return not store.remote or", "return"),),
        killer=f"{SEGMENT_TESTS}::test_a_directory_that_changes_while_it_is_read_has_no_holes",
    ),
    Mutant(
        name="a compaction may reach beyond the version",
        target=f"{SEGMENT}:_chosen_compactions",
        edits=(("item.version < item.end_version <= last", "item.version < item.end_version"),),
        killer=f"{COMPACTION_TESTS}::test_of_several_the_longest_that_fits",
    ),
    Mutant(
        name="the commits beside a compaction are read, too",
        target=f"{SEGMENT}:LogSegment.replayed_files",
        edits=((" if commit.version not in spared", ""),),
        killer=f"{COMPACTION_TESTS}::test_it_stands_for_its_commits",
    ),
    Mutant(
        name="a multi-part checkpoint lacks a part",
        target="delta_core.log.listing:list_log",
        edits=((" or len(parts) == group", " or parts"),),
        killer=f"{SEGMENT_TESTS}::test_a_multi_part_checkpoint_needs_all_parts",
    ),
    Mutant(
        name="a name that is listed twice is there twice",
        target="delta_core.log.listing:list_log",
        edits=(("commits[path.version] = CommitFile", "commits[path.version, len(commits)] = CommitFile"),),
        killer=f"{SEGMENT_TESTS}::test_repeated_and_unsorted_listing",
    ),
    Mutant(
        name="commits come in the order of the listing",
        target="delta_core.log.listing:list_log",
        edits=(("for version in sorted(commits)", "for version in commits"),),
        killer=f"{SEGMENT_TESTS}::test_repeated_and_unsorted_listing",
    ),
    Mutant(
        name="a temporary file is a commit",
        target="delta_core.log.log_path:LogPath.parse",
        edits=(("match = pattern.fullmatch(bare)", "match = pattern.search(bare)"),),
        killer="tests/unit/log/test_log_path.py::test_other_names_mean_nothing",
    ),
    Mutant(
        name="a sidecar of another size is taken",
        target=f"{CHECKPOINT}:CheckpointReader._open_sidecar",
        edits=(("if part.size_bytes != info.size_bytes:", "if False:"),),
        killer=f"{DAMAGED_SIDECAR}[other size-json]",
    ),
    Mutant(
        name="a sidecar that is missing holds nothing",
        target=f"{CHECKPOINT}:CheckpointReader._open_sidecars",
        edits=(
            (
                '        sidecars = list(self.actions("sidecar"))\n',
                "        there = {info.path for info in self._store.walk(SIDECAR_DIRECTORY)}\n"
                '        sidecars = [one for one in self.actions("sidecar")]\n'
                "        sidecars = [s for s in sidecars if f\"{SIDECAR_DIRECTORY}/{s['path']}\" in there]\n",
            ),
        ),
        killer=f"{DAMAGED_SIDECAR}[missing-json]",
    ),
    Mutant(
        name="a checkpoint of another version is taken",
        target=f"{CHECKPOINT}:CheckpointReader._check_version",
        edits=(("if found and found[0] != self.files.version:", "if False:"),),
        killer=f"{V2_TESTS}::test_the_checkpoint_says_which_version_it_is",
    ),
    Mutant(
        name="a refresh does not look at what the process has committed",
        target="delta_core.snapshot.snapshot:Snapshot.refresh",
        edits=(("not_below_floor(self._store, self._clock, self._refreshed)", "self._refreshed()"),),
        killer="tests/unit/snapshot/test_version_floor.py"
        "::test_a_handle_from_before_an_own_commit_does_not_refresh_to_less",
    ),
]
