"""What a run found, as a value, as JSON and as Markdown."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from delta_core.conformance.check import CheckResult, Status
from delta_core.conformance.place import CleanUp
from delta_core.errors import escape_control_characters

FORMAT_VERSION: Final = 1
_SHOWN_LEFT: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ConformanceReport:
    """A run; holds no storage option.

    Attributes:
        uri: the prefix that was written to.
        writers: how many processes raced and committed.
        began_ms: when it began, in epoch milliseconds.
        surroundings: the machine and the programs that spoke to the store: names and versions.
        seconds: how long it took, cleaning up included.
    """

    uri: str
    writers: int
    began_ms: int
    surroundings: Mapping[str, str]
    seconds: float
    results: Sequence[CheckResult]
    clean_up: CleanUp

    @property
    def certified(self) -> bool:
        """Whether every check passed, but for what commits do not need."""
        return all(result.status in (Status.PASSED, Status.LIMITED) for result in self.results)

    @property
    def checked(self) -> bool:
        """Whether the store was asked at all; False says nothing of it."""
        return not any(result.status is Status.NO_ACCESS for result in self.results)

    @property
    def verdict(self) -> str:
        """One line: what the store is safe for, or what it fails."""
        if not self.checked:
            return "NOT CHECKED: there is no access, so nothing is known of the store"
        failed = [result for result in self.results if result.status is Status.FAILED]
        missing = [result for result in self.results if result.status is Status.NOT_RUN]
        limited = [result.name for result in self.results if result.status is Status.LIMITED]
        if any(result.decides_writers for result in failed):
            return f"NOT SAFE for concurrent writers; fails: {_names(failed)}"
        if failed:
            return f"NOT CERTIFIED: does not keep the contract; fails: {_names(failed)}"
        if missing:
            return f"NOT CERTIFIED: not run: {_names(missing)}"
        but = f"; limited: {', '.join(limited)}" if limited else ""
        return f"SAFE for {self.writers} concurrent writers{but}"

    @property
    def _began(self) -> str:
        moment = dt.datetime.fromtimestamp(self.began_ms / 1000, dt.UTC)
        return f"{moment:%Y-%m-%d %H:%M:%S} UTC"

    def to_json(self) -> dict[str, Any]:
        """The report as a JSON object."""
        return {
            "format_version": FORMAT_VERSION,
            **self.surroundings,
            "began": self._began,
            "uri": self.uri,
            "verdict": self.verdict,
            "checked": self.checked,
            "certified": self.certified,
            "writers": self.writers,
            "seconds": round(self.seconds, 1),
            "checks": [
                {**asdict(result), "status": result.status.value, "seconds": round(result.seconds, 2)}
                for result in self.results
            ],
            "clean_up": asdict(self.clean_up),
        }

    def to_markdown(self) -> str:
        """The report as a page; what a store said cannot forge lines or cells in it."""
        return "\n".join(self._page()) + "\n"

    def _page(self) -> Iterator[str]:
        yield "# Conformance of a store"
        yield ""
        yield f"**{_cell(self.verdict)}**"
        yield ""
        yield "| | |"
        yield "|---|---|"
        yield f"| place | `{_cell(self.uri)}` |"
        yield f"| began | {self._began}, took {self.seconds:.0f} s |"
        for name, value in self.surroundings.items():
            yield f"| {name} | {_cell(value)} |"
        yield f"| writers | {self.writers} processes; in a race each is several threads |"
        yield ""
        yield "| check | name | outcome | seconds | seen |"
        yield "|---|---|---|---|---|"
        for result in self.results:
            seen = _cell(result.detail or result.problem)
            title = f"{_cell(result.title)} | `{_cell(result.name)}`"
            yield f"| {title} | {result.status.value} | {result.seconds:.1f} | {seen} |"
        for result in self.results:
            if result.problem:
                yield ""
                yield f"## {_cell(result.title)} (`{_cell(result.name)}`): {result.status.value}"
                yield ""
                yield f"- Problem: {_cell(result.problem)}"
                yield f"- Cause: {_cell(result.cause)}"
                yield f"- Fix: {_cell(result.fix)}"
        yield ""
        yield "## Cleaning up"
        yield ""
        yield from (_cell(line) for line in clean_up_lines(self))


def clean_up_lines(report: ConformanceReport) -> Iterator[str]:
    """What was deleted, and what is left."""
    found = report.clean_up
    if not found.listed:
        yield f"{found.deleted} objects were deleted. Below {report.uri} nothing can be listed: {found.why}"
        return
    if not found.left and not found.deleted:
        yield "No object is left."
        return
    if not found.left:
        yield f"All {found.deleted} objects that were written are deleted."
        return
    yield f"{found.deleted} objects were deleted, {len(found.left)} are left below {report.uri}: {found.why}"
    yield from (f"- {path}" for path in found.left[:_SHOWN_LEFT])
    if len(found.left) > _SHOWN_LEFT:
        yield f"- and {len(found.left) - _SHOWN_LEFT} more"


def _names(results: Sequence[CheckResult]) -> str:
    return ", ".join(result.name for result in results)


def _cell(text: str) -> str:
    return escape_control_characters(text).replace("|", "\\|").replace("<", "&lt;")
