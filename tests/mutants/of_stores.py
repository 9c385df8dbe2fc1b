"""Mutants of the stores that decide a commit: the local file system, and S3 with DynamoDB."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

LOCAL = "delta_core.storage.local"
DYNAMO = "delta_core.storage.s3_dynamodb:S3DynamoDbLogStore"
ENTRIES = "delta_core.storage.dynamodb_entries:DynamoDbEntries"

LOCAL_TESTS = "tests/unit/storage/test_local.py"
DYNAMO_TESTS = "tests/unit/storage/test_s3_dynamodb.py"

ATTEMPTS_TESTS = "tests/unit/storage/test_dynamodb_attempts.py"

REPLACED = f"{LOCAL_TESTS}::test_nothing_is_replaced_whenever_another_writer_comes"
SYNCED = f"{LOCAL_TESTS}::test_synced_file_then_directory_then_new_parents"

MUTANTS = [
    Mutant(
        name="the file is not flushed",
        target=f"{LOCAL}:LocalLogStore._write_temporary",
        edits=(("os.fsync(descriptor)", "pass"),),
        killer=SYNCED,
    ),
    Mutant(
        name="an output is not flushed",
        target=f"{LOCAL}:LocalLogStore.open_output",
        edits=(("            _sync_file(temporary)\n", ""),),
        killer=SYNCED,
    ),
    Mutant(
        name="the directory is not flushed",
        target=f"{LOCAL}:LocalLogStore.put_if_absent",
        edits=(("_sync_directory(target.parent)", "pass"),),
        killer=SYNCED,
    ),
    Mutant(
        name="new directories are not flushed",
        target=f"{LOCAL}:_make_directories",
        edits=(("_sync_directory(path.parent)", "pass"),),
        killer=SYNCED,
    ),
    Mutant(
        name="files that others wrote are not flushed",
        target=f"{LOCAL}:LocalLogStore.persist",
        edits=(("_sync_file(target)", "target.stat()"),),
        killer=f"{LOCAL_TESTS}::test_persist_flushes_the_file_and_every_directory_up_to_the_root",
    ),
    Mutant(
        name="a commit is renamed into its place",
        target=f"{LOCAL}:LocalLogStore._link",
        edits=(("os.link(temporary, target)", "os.replace(temporary, target)"),),
        killer=REPLACED,
    ),
    Mutant(
        name="a commit is renamed into a place that was free a moment ago",
        target=f"{LOCAL}:LocalLogStore._link",
        edits=(
            (
                "            os.link(temporary, target)\n",
                "            if target.exists():\n"
                "                raise FileExistsError\n"
                "            os.replace(temporary, target)\n",
            ),
        ),
        killer=REPLACED,
    ),
    Mutant(
        name="a link that was made is taken for another's",
        target=f"{LOCAL}:_is_linked",
        edits=(("return os.path.samestat(", "return not os.path.samestat("),),
        killer=f"{LOCAL_TESTS}::test_lost_answer_of_a_link_that_was_made",
    ),
    Mutant(
        name="a link that a backup made is taken for our own",
        target=f"{LOCAL}:_is_linked",
        edits=(
            (
                "os.path.samestat(os.lstat(temporary), os.lstat(target))",
                "os.stat(temporary).st_nlink == 2",
            ),
        ),
        killer="tests/unit/storage/test_backup_links.py",
    ),
    Mutant(
        name="a file is made behind a link that appeared meanwhile",
        target="delta_core.storage.local_walk:is_in",
        edits=(("        return False\n", "        return True\n"),),
        killer="tests/unit/storage/test_local_links.py",
    ),
    Mutant(
        name="a store without hard links is written to",
        target=f"{LOCAL}:LocalLogStore._link",
        edits=(("if error.errno in _NO_HARD_LINKS:", "if False:"),),
        killer=f"{LOCAL_TESTS}::test_failing_link",
    ),
    Mutant(
        name="an entry is written over another's",
        target=f"{ENTRIES}.create",
        edits=((', ConditionExpression="attribute_not_exists(fileName)"', ""),),
        killer=f"{DYNAMO_TESTS}::test_who_has_the_entry_has_the_version",
    ),
    Mutant(
        name="an entry is complete without its commit file",
        target=f"{DYNAMO}.put_if_absent",
        edits=(("            self._copy(entry, data)\n", ""),),
        killer=f"{DYNAMO_TESTS}::test_a_commit_is_an_entry_and_a_file",
    ),
    Mutant(
        name="an incomplete entry expires",
        target=f"{ENTRIES}.create",
        edits=(("Item=item", 'Item={**item, "expireTime": {"N": "1"}}'),),
        killer=f"{DYNAMO_TESTS}::test_only_a_complete_entry_expires",
    ),
    Mutant(
        name="a complete entry never expires",
        target=f"{ENTRIES}.complete",
        edits=(('Item={**item, "expireTime": {"N": str(expires)}}', "Item=item"),),
        killer=f"{DYNAMO_TESTS}::test_only_a_complete_entry_expires",
    ),
    Mutant(
        name="the commit file may be another's",
        target=f"{DYNAMO}._copy",
        edits=(("if found == data:", "if True:"),),
        killer=f"{DYNAMO_TESTS}::test_a_writer_that_does_not_use_dynamodb_is_noticed",
    ),
    Mutant(
        name="the commit before is not finished first",
        target=f"{DYNAMO}._require_turn",
        edits=(("            self._finish(entry)\n", "            return\n"),),
        killer=f"{DYNAMO_TESTS}::test_the_commit_before_is_finished_first",
    ),
    Mutant(
        name="a version may be skipped",
        target=f"{DYNAMO}._require_turn",
        edits=(("elif not self._exists(before):", "elif False:"),),
        killer=f"{DYNAMO_TESTS}::test_no_version_is_skipped",
    ),
    Mutant(
        name="entries of a table that was there before do not matter",
        target=f"{DYNAMO}._require_turn",
        edits=(("if old is not None and old.complete:", "if False:"),),
        killer=f"{DYNAMO_TESTS}::test_entries_of_an_old_table_are_refused",
    ),
    Mutant(
        name="a listing does not wait for the newest entry",
        target=f"{DYNAMO}.list_directory",
        edits=(("if path == _LOG:", "if False:"),),
        killer=f"{DYNAMO_TESTS}::test_readers_finish_what_a_writer_left",
    ),
    Mutant(
        name="a commit asked for by name is not looked for",
        target=f"{DYNAMO}._recovered",
        edits=(("if entry is None or entry.complete:", "if True:"),),
        killer=f"{DYNAMO_TESTS}::test_readers_finish_what_a_writer_left",
    ),
    Mutant(
        name="the own entry is taken for another's",
        target=f"{ENTRIES}.create",
        edits=(("if found is not None and found.temp_path == entry.temp_path:", "if False:"),),
        killer=f"{DYNAMO_TESTS}::test_an_entry_that_landed_is_ours_whatever_the_answer",
    ),
    Mutant(
        name="an entry is sent again by the client itself",
        target=f"{ENTRIES}.create",
        edits=(("once=True, ", ""),),
        killer=f"{ATTEMPTS_TESTS}::test_a_version_is_taken_in_one_attempt",
    ),
    Mutant(
        name="a commit file that is there is written from its temporary copy",
        target=f"{DYNAMO}._finish",
        edits=(("if not self._exists(path):", "if True:"),),
        killer=f"{DYNAMO_TESTS}::test_a_commit_file_that_is_there_needs_no_temporary_copy",
    ),
    Mutant(
        name="a part of a listed file is taken for it",
        target="delta_core.storage.log_store:fetch_listed",
        edits=(("if len(data) == info.size_bytes:", "if True:"),),
        killer="tests/unit/log/test_bounded_read.py::test_a_file_that_is_cut_is_read_again_and_never_taken",
    ),
    Mutant(
        name="a sidecar that is cut is kept",
        target="delta_core.storage.cached:CachedLogStore.open_whole",
        edits=(("if info is not None or _is_whole_parquet(found):", "if True:"),),
        killer="tests/unit/storage/test_cached.py::test_a_sidecar_that_is_cut_is_not_kept",
    ),
    Mutant(
        name="an unclear entry loses its bytes",
        target=f"{DYNAMO}.put_if_absent",
        edits=(("except AmbiguousWriteError:", "except ZeroDivisionError:"),),
        killer=f"{DYNAMO_TESTS}::test_an_unclear_entry_keeps_its_bytes",
    ),
    Mutant(
        name="an entry is read from a replica",
        target=f"{ENTRIES}.get",
        edits=(("ConsistentRead=True", "ConsistentRead=False"),),
        killer=f"{DYNAMO_TESTS}::test_entries_are_read_consistently",
    ),
    Mutant(
        name="another spelling of the table has entries of its own",
        target=f"{ENTRIES}._path",
        edits=(("used[0] if used else spelled[0]", "spelled[0]"),),
        killer=f"{DYNAMO_TESTS}::test_the_spelling_of_other_writers_is_used",
    ),
]
