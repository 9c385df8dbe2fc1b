"""The report of a run, as a value, as JSON and as Markdown."""

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
    """The report of a run. Contains no storage option.

    Attributes:
        uri: the prefix of the run.
        writers: the number of processes that raced and committed.
        began_ms: the start, in epoch milliseconds.
        surroundings: the machine and the client programs: names and versions.
        seconds: the duration, including the clean-up.
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
        """Whether every check passed, except for checks that commits do not need."""
        return all(result.status in (Status.PASSED, Status.LIMITED) for result in self.results)

    @property
    def checked(self) -> bool:
        """Whether the store could be accessed. When False, the report has no result for the store."""
        return not any(result.status is Status.NO_ACCESS for result in self.results)

    @property
    def verdict(self) -> str:
        """One line: what the store is safe for, or which checks it fails."""
        if not self.checked:
            return "NOT CHECKED: the store could not be accessed"
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
        """The report as a Markdown page. Messages of the store cannot create lines or cells in it."""
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
        yield f"| writers | {self.writers} processes; each races with several threads |"
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
    """Lines about the objects that were deleted and those that remain."""
    clean_up = report.clean_up
    if not clean_up.listed:
        yield (
            f"{clean_up.deleted} objects were deleted. The objects below {report.uri} cannot be listed: "
            f"{clean_up.why}"
        )
        return
    if not clean_up.left and not clean_up.deleted:
        yield "No objects remain."
        return
    if not clean_up.left:
        yield f"All {clean_up.deleted} written objects were deleted."
        return
    yield (
        f"{clean_up.deleted} objects were deleted, {len(clean_up.left)} remain below {report.uri}: "
        f"{clean_up.why}"
    )
    yield from (f"- {path}" for path in clean_up.left[:_SHOWN_LEFT])
    if len(clean_up.left) > _SHOWN_LEFT:
        yield f"- and {len(clean_up.left) - _SHOWN_LEFT} more"


def _names(results: Sequence[CheckResult]) -> str:
    return ", ".join(result.name for result in results)


def _cell(text: str) -> str:
    return escape_control_characters(text).replace("|", "\\|").replace("<", "&lt;")
