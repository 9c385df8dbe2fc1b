"""Checks with several processes: races, visibility of writes, a killed writer, real commits."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from statistics import median

from delta_core.conformance.check import Context
from delta_core.conformance.expectations import require, require_same
from delta_core.conformance.objects import commit_path, settle
from delta_core.conformance.worker import AMBIGUOUS, BODY_REPEATS, EXISTS, WON
from delta_core.conformance.workers import worker_processes
from delta_core.errors import ObjectNotFoundError
from delta_core.scan.scan import Scan
from delta_core.snapshot.snapshot import Snapshot

MAX_RACES = 60
MIN_RACES = 5
THREADS_EACH = 4
APPENDS_EACH = 10

_LEAD_SECONDS = 0.03
_KILLED_BODY = "a line of a writer that is killed\n"
_KILLED_TIMES = 250_000
_KILLED_AFTER_SECONDS = (0.005, 0.03, 0.15)
_MAX_PROBES = 20


def create_only_race(context: Context) -> str:
    """Of many writers of one name, in processes and threads, exactly one wins, and its content stays."""
    store = context.place.store("race")
    deadline = context.deadline()
    racers = [
        [f"racer {index}.{thread}\n" for thread in range(THREADS_EACH)]
        for index in range(len(context.workers))
    ]
    rounds, spurious, unclear = 0, 0, 0
    while rounds < MAX_RACES and not (context.is_over(deadline) and rounds >= 1):
        path = commit_path(rounds)
        at = context.clock.monotonic_seconds() + _LEAD_SECONDS
        for worker, bodies in zip(context.workers, racers, strict=True):
            worker.send({"do": "create", "table": "race", "path": path, "bodies": bodies, "at": at})
        answers: dict[str, str] = {}
        for worker, bodies in zip(context.workers, racers, strict=True):
            answers.update(zip(bodies, worker.answer()["told"], strict=True))
        winner = _stored(store.read(path), answers)
        _judge(answers, winner)
        spurious += answers[winner] == EXISTS
        unclear += sum(answer == AMBIGUOUS for answer in answers.values())
        rounds += 1
    require(
        rounds >= MIN_RACES,
        f"Only {rounds} races finished in {context.seconds:.0f} s.",
        cause="The store is too slow for the time limit of the run.",
        fix="Increase --max-seconds, or reduce --writers.",
    )
    return (
        f"{rounds} races of {len(context.workers) * THREADS_EACH} writers, "
        f"in {len(context.workers)} processes with {THREADS_EACH} threads each, one winner per race"
        f"{_also(spurious, 'winners got the answer that the name was taken')}"
        f"{_also(unclear, 'answers were unclear')}"
    )


def _also(count: int, what: str) -> str:
    return f"; {count} {what}" if count else ""


def _stored(data: bytes, answers: dict[str, str]) -> str:
    for body in answers:
        if data == body.encode() * BODY_REPEATS:
            return body
    require(False, f"the object after a race has the content of no racer ({len(data)} bytes)")
    return ""


def _judge(answers: dict[str, str], winner: str) -> None:
    winners = [body.strip() for body, answer in answers.items() if answer == WON]
    require(
        len(winners) <= 1,
        f"{len(winners)} writers got the answer that they created the same object: {', '.join(winners)}.",
    )
    require(
        not winners or answers[winner] == WON,
        f"{''.join(winners)} got the answer that it created the object, but {winner.strip()} did.",
    )
    odd = [answer for answer in answers.values() if answer not in (WON, EXISTS, AMBIGUOUS)]
    require(not odd, f"{len(odd)} writers got another answer: {next(iter(odd), '')}")


def forward_probes(context: Context) -> str:
    """Other processes see an object as soon as it is created, also when they asked for it before."""
    store = context.place.store("probes")
    deadline, done = context.deadline(), 0
    while done < _MAX_PROBES and not (context.is_over(deadline) and done >= 1):
        path, data = commit_path(done), b"version %d" % done
        ask = {"do": "read", "table": "probes", "path": path}
        readers = [context.workers[(done + shift) % len(context.workers)] for shift in range(2)]
        for reader in readers:
            require_same(reader.ask(ask)["sha256"], None, "the object before it is written")
        store.put_if_absent(path, data)
        for reader in readers:
            digest = reader.ask(ask)["sha256"]
            require(digest is not None, "an object is not found by another process right after its creation")
            require_same(digest, hashlib.sha256(data).hexdigest(), "the content that another process reads")
        listed = [info.path for info in store.list_directory("_delta_log", start_after=path[11:-6])]
        require(path in listed or not store.consistent_listing, "a new object is missing in a listing")
        done += 1
    return f"{done} objects, each read before and right after its creation"


def killed_writers(context: Context) -> str:
    """A writer that is killed during a write leaves a complete object or nothing."""
    store = context.place.store("killed")
    data = _KILLED_BODY.encode() * _KILLED_TIMES
    landed = 0
    with worker_processes(context.place, len(_KILLED_AFTER_SECONDS)) as doomed:
        for version, (worker, seconds) in enumerate(zip(doomed, _KILLED_AFTER_SECONDS, strict=True)):
            path = commit_path(version)
            write = {"do": "write", "table": "killed", "path": path}
            worker.send({**write, "body": _KILLED_BODY, "times": _KILLED_TIMES})
            context.clock.sleep(seconds)
            worker.kill()
            try:
                stored = store.read(path)
            except ObjectNotFoundError:
                pass
            else:
                landed += 1
                require(stored == data, f"{len(stored)} of {len(data)} bytes of a killed writer can be read")
            settle(context, store, path, data)
    return f"{len(_KILLED_AFTER_SECONDS)} writers killed, {landed} objects were stored, none in part"


def concurrent_commits(context: Context) -> str:
    """Every commit that a process reports is in exactly one version, and no version is missing."""
    for writer, worker in enumerate(context.workers):
        command = {"do": "append", "table": "commits", "writer": writer, "seconds": context.seconds}
        worker.send({**command, "count": APPENDS_EACH})
    answers = [worker.answer()["told"] for worker in context.workers]
    store = context.place.store("commits")
    # Read one by one, so that a listing cannot hide a version.
    versions: dict[tuple[str, int], list[int]] = {}
    ids: Counter[str] = Counter()
    count = 0
    while True:
        try:
            commit = store.read(commit_path(count))
        except ObjectNotFoundError:
            break
        for line in commit.splitlines():
            action = json.loads(line)
            if "txn" in action:
                key = action["txn"]["appId"], action["txn"]["version"]
                versions.setdefault(key, []).append(count)
            if "commitInfo" in action:
                ids[action["commitInfo"]["txnId"]] += 1
        count += 1
    listed = [info.path for info in store.list_directory("_delta_log") if info.path.endswith(".json")]
    require_same(listed, [commit_path(version) for version in range(count)], "the listing of the log")
    _require_each_once(answers, versions)
    require(len(ids) == count, f"{count} versions have {len(ids)} transactions")
    require(len(versions) == count, f"{count} versions have {len(versions)} keys")
    rows = Scan(Snapshot.load(store)).to_table().num_rows
    require_same(rows, count, "the number of rows")
    require(all(answers), f"{sum(not appends for appends in answers)} writers made no commit in time")
    seconds = median(append["seconds"] for appends in answers for append in appends)
    recovered = sum(append["how"] == "recovered" for appends in answers for append in appends)
    return (
        f"{count} commits of {len(answers)} processes, each in one version; "
        f"half took less than {seconds:.2f} s"
        f"{_also(recovered, 'were found by reading back')}"
    )


def _require_each_once(
    answers: Sequence[Sequence[dict[str, object]]], versions: dict[tuple[str, int], list[int]]
) -> None:
    for writer, appends in enumerate(answers):
        for append in appends:
            commit_versions = versions.get((f"writer-{writer}", int(str(append["number"]))), [])
            what = f"commit {append['number']} of writer {writer}, reported as version {append['version']}"
            require(bool(commit_versions), f"{what}, is missing in all versions.")
            require(len(commit_versions) == 1, f"{what}, is in versions {commit_versions}.")
            require(
                append["how"] == "already applied" or commit_versions == [append["version"]],
                f"{what}, is in version {commit_versions[0]}.",
            )
