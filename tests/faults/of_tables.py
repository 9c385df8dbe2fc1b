"""Faults of reading, checkpoints, vacuum and log cleanup: which files a version has, and what may go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.faults.fault import Fault, returns

_TAIL = "delta_core.replay.tail"
_SUPPORT = "delta_core.table_features.support"
_VACUUM = "delta_core.maintenance.vacuum"
_CLEANUP = "delta_core.checkpoint.log_cleanup"

_REPLAY_TESTS = "tests/unit/replay/test_replay.py"
_SUPPORT_TESTS = "tests/unit/table_features/test_support.py"
_VACUUM_TESTS = "tests/unit/maintenance/test_vacuum.py"
_CLEANUP_TESTS = "tests/unit/checkpoint/test_log_cleanup.py"


def _newest_first(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda commits: original(reversed(list(commits)))


def _path_alone(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda fields: (original(fields)[0], "")


def _live_files_go(original: Callable[..., Any]) -> Callable[..., Any]:
    def keys_to_keep(snapshot: Any, *, cutoff_ms: int, removes: Any) -> Any:
        from delta_core.maintenance.vacuum.file_keys import FileKeys

        keys = FileKeys(root_uri=snapshot.store.uri)
        keys.add_files(snapshot.tombstones(since_ms=cutoff_ms))
        return keys

    return keys_to_keep


def _young_tombstones_go(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda snapshot, *, cutoff_ms, removes: original(snapshot, cutoff_ms=1 << 62, removes=removes)


def _every_file_is_old(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda snapshot, *, cutoff_ms: original(snapshot, cutoff_ms=1 << 62)


def _oldest_kept_version_goes(original: Callable[..., Any]) -> Callable[..., Any]:
    def cleanup_expired_logs(snapshot: Any, **given: Any) -> Any:
        from delta_core.log.log_path import LOG_DIRECTORY, LogPath

        done = original(snapshot, **given)
        if done.checkpoint_version is not None and not given.get("dry_run"):
            for info in snapshot.store.list_directory(LOG_DIRECTORY):
                path = LogPath.parse(info.path)
                if path is not None and path.version == done.checkpoint_version:
                    snapshot.store.delete(info.path)
        return done

    return cleanup_expired_logs


FAULTS = [
    Fault(
        name="commits are replayed from the newest",
        guarantee="of two actions on one thing the newest wins",
        target=f"{_TAIL}:replay_tail",
        mutate=_newest_first,
        killer=f"{_REPLAY_TESTS}::test_the_last_word_on_an_application_and_on_a_domain_stands",
    ),
    Fault(
        name="the deletion vector is no part of a file's identity",
        guarantee="a remove takes the file with that very deletion vector",
        target=f"{_TAIL}:file_key",
        mutate=_path_alone,
        killer=f"{_REPLAY_TESTS}::test_random_histories_equal_a_model",
    ),
    Fault(
        name="an unknown table feature does not keep readers away",
        guarantee="a table whose rows could be misread is refused",
        target=f"{_SUPPORT}:_may_read",
        mutate=returns(True),
        killer=f"{_SUPPORT_TESTS}::test_unknown_features_and_versions",
    ),
    Fault(
        name="a table feature does not keep writers away",
        guarantee="a table that a write could damage is refused",
        target=f"{_SUPPORT}:_may_write",
        mutate=returns(True),
        killer=f"{_SUPPORT_TESTS}::test_readable_but_not_writable",
    ),
    Fault(
        name="vacuum takes live files",
        guarantee="vacuum keeps what the newest version names",
        target=f"{_VACUUM}.protected:keys_to_keep",
        mutate=_live_files_go,
        killer=f"{_VACUUM_TESTS}::test_what_is_deleted_is_what_the_dry_run_said",
    ),
    Fault(
        name="vacuum takes young files",
        guarantee="vacuum keeps files that a commit may name soon",
        target=f"{_VACUUM}.listing:listed_files",
        mutate=_every_file_is_old,
        killer=f"{_VACUUM_TESTS}::test_young_files_stay_even_when_the_log_does_not_know_them",
    ),
    Fault(
        name="vacuum takes files with a tombstone within the retention",
        guarantee="a version within the retention can be read",
        target=f"{_VACUUM}.protected:keys_to_keep",
        mutate=_young_tombstones_go,
        killer=f"{_VACUUM_TESTS}::test_a_file_removed_within_the_retention_stays_however_old_it_is",
    ),
    Fault(
        name="log cleanup takes the checkpoint of the oldest kept version",
        guarantee="every version within the log retention can be read",
        target=f"{_CLEANUP}:cleanup_expired_logs",
        mutate=_oldest_kept_version_goes,
        killer=f"{_CLEANUP_TESTS}::test_everything_before_the_cutoff_checkpoint_goes",
    ),
    Fault(
        name="log cleanup relies on a checkpoint that cannot be read",
        guarantee="the log before a checkpoint goes only when the checkpoint stands for it",
        target=f"{_CLEANUP}:_is_sound",
        mutate=returns(True),
        killer=f"{_CLEANUP_TESTS}::test_a_damaged_checkpoint_is_not_relied_on",
    ),
    Fault(
        name="a checkpoint is not compared with its version",
        guarantee="_last_checkpoint names a checkpoint that was read back",
        target="delta_core.checkpoint.checkpoint_contents:Contents.difference",
        mutate=returns(None),
        killer="tests/unit/checkpoint/test_classic.py::test_what_does_not_verify_is_deleted",
    ),
]
