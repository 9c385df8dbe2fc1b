"""One metadata domain at a version, found without the list of files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from delta_core.actions import DomainMetadata
from delta_core.actions.json_codec import action_from_json, iter_lines, parse_line
from delta_core.log.commit_reader import CommitData


def latest_domain(
    commits: Sequence[CommitData], name: str, before: Callable[[], Mapping[str, DomainMetadata]]
) -> DomainMetadata | None:
    """What a version says of a domain; None where it does not have it, or no more.

    Looks backwards and no further than needed, and parses only lines that can hold the answer.

    Args:
        commits: the version's last ones, oldest first.
        name: the domain.
        before: the domains before these commits; asked only when no commit tells.

    Raises:
        CorruptLogError: a line that can hold the answer is damaged.
    """
    for commit in reversed(commits):
        found = _in_commit(commit, name)
        if found is not None:
            return None if found.removed else found
    return before().get(name)


def _in_commit(commit: CommitData, name: str) -> DomainMetadata | None:
    # A JSON key may be written with escapes, so a line with one must be looked into, too.
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
