"""Lookup of one metadata domain at a version, without loading the live files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from delta_core.actions import DomainMetadata
from delta_core.actions.json_codec import action_from_json, iter_lines, parse_line
from delta_core.log.commit_reader import CommitData


def latest_domain(
    commits: Sequence[CommitData], name: str, before: Callable[[], Mapping[str, DomainMetadata]]
) -> DomainMetadata | None:
    """The metadata of a domain at a version; None if the version does not have the domain or removed it.

    Searches the commits backwards until the domain is found, and parses only lines that can contain it.

    Args:
        commits: the latest commits of the version, oldest first.
        name: the domain.
        before: returns the domains before these commits; called only if no commit contains the domain.

    Raises:
        CorruptLogError: a line that can contain the domain is damaged.
    """
    for commit in reversed(commits):
        domain = _in_commit(commit, name)
        if domain is not None:
            return None if domain.removed else domain
    return before().get(name)


def _in_commit(commit: CommitData, name: str) -> DomainMetadata | None:
    # A JSON key may be written with escapes, so a line with an escape must be parsed, too.
    marks = (b'"domainMetadata"', b"\\u00")
    if not any(mark in commit.data for mark in marks):
        return None
    for number, line in iter_lines(commit.data):
        if not any(mark in line for mark in marks):
            continue
        raw = parse_line(line, number=number, path=commit.path)
        if raw is None or raw.kind != "domainMetadata":
            continue
        action = action_from_json(raw.kind, raw.fields)
        if isinstance(action, DomainMetadata) and action.domain == name:
            return action
    return None
