"""Delta-spark's rules for a stream's batches as a model, over the log as plain JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

END = 1 << 60


@dataclass(frozen=True)
class ModelOptions:
    """The options that change which files a stream reads."""

    ignore_deletes: bool = False
    ignore_changes: bool = False
    skip_change_commits: bool = False
    max_files: int | None = None
    max_bytes: int | None = None


class RefusedError(Exception):
    """A commit that the stream does not read."""


def commit_of(table: Path, version: int) -> list[dict[str, Any]]:
    lines = (table / "_delta_log" / f"{version:020d}.json").read_text().splitlines()
    return [json.loads(line) for line in lines]


def live_at(table: Path, version: int) -> list[dict[str, Any]]:
    live: dict[str, dict[str, Any]] = {}
    for number in range(version + 1):
        actions = commit_of(table, number)
        for action in actions:
            if "remove" in action:
                live.pop(action["remove"]["path"], None)
        live |= {action["add"]["path"]: action["add"] for action in actions if "add" in action}
    return sorted(live.values(), key=lambda add: (add["modificationTime"], add["path"]))


def entries(
    table: Path, start: tuple[int, int, bool], newest: int, options: ModelOptions
) -> Iterator[tuple[int, int, dict[str, Any] | None]]:
    """(version, index, file) of everything after a position, with marks (no file) around each version."""
    version, index, is_snapshot = start
    if is_snapshot:
        marked = [(-1, None), *enumerate(live_at(table, version)), (END, None)]
        yield from ((version, number, add) for number, add in marked if number > index)
        version, index = version + 1, -2
    for number in range(version, newest + 1):
        adds = _adds(table, number, options)
        for place, add in [(-1, None), *enumerate(adds), (END, None)]:
            if number > version or place > index:
                yield number, place, add


def _adds(table: Path, version: int, options: ModelOptions) -> list[dict[str, Any]]:
    actions = commit_of(table, version)
    adds = [a["add"] for a in actions if a.get("add", {}).get("dataChange")]
    removed = any(a.get("remove", {}).get("dataChange") for a in actions)
    if removed:
        allowed = options.ignore_changes or options.skip_change_commits
        if not allowed and not (options.ignore_deletes and not adds):
            raise RefusedError(version)
        if options.skip_change_commits:
            return []
    return adds


def batches(
    table: Path, start: tuple[int, int, bool], newest: int, options: ModelOptions
) -> Iterator[list[str]]:
    """The paths of each batch with files, until the stream has caught up; RefusedError after the last one."""
    position = start
    while True:
        files = options.max_files if options.max_files is not None else 1 << 40
        size = options.max_bytes if options.max_bytes is not None else 1 << 60
        paths: list[str] = []
        last = None
        refused: RefusedError | None = None
        try:
            for version, index, add in entries(table, position, newest, options):
                if add is not None:
                    if files <= 0 or size <= 0:
                        break
                    files, size = files - 1, size - add["size"]
                    paths.append(add["path"])
                last = (version, index)
        except RefusedError as error:
            refused = error
        if paths:
            yield paths
        if last is None or (refused is not None and not paths and _at(last, position) == position):
            if refused is not None:
                raise refused
            return
        position = _at(last, position)


def _at(last: tuple[int, int], position: tuple[int, int, bool]) -> tuple[int, int, bool]:
    version, index = last
    if index == END:
        return version + 1, -1, False
    return version, index, position[2] and version == position[0]
