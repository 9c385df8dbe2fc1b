"""The kinds of jobs there are, by name."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from delta_core.errors import ConfigurationError, InvalidJobSpecError
from delta_core.jobs.context import JobContext
from delta_core.jobs.job_result import JobResult
from delta_core.jobs.job_spec import JobSpec
from delta_core.jobs.json_schema import JsonSchema, violations

_LOGGER = logging.getLogger(__name__)

ENTRY_POINT_GROUP: Final = "deltaward.jobs"
"""Other distributions add kinds here: each entry point is a function `register(registry)`."""

JobHandler = Callable[[JobSpec, JobContext], JobResult]
"""Does the work of one kind. It raises DeltaError; `run_job` turns that into a result."""

ALLOWED_ROOT_URIS: Final[JsonSchema] = {
    "type": ["array", "null"],
    "items": {"type": "string", "minLength": 1},
    "description": "Where absolute paths of the log may lead, for a shallow clone. Files elsewhere are left "
    "alone.",
}
"""The schema of the parameter of that name; see `JobContext.allowed_roots`."""

_NO_PARAMS: Final[JsonSchema] = {"type": "object", "additionalProperties": False, "properties": {}}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobKind:
    """One kind of job.

    Attributes:
        run: the handler.
        help: one sentence for people.
        params_schema: JSON Schema of `JobSpec.params`.
        needs_table: False when the kind may create the table; its context then has no snapshot.
        commits: False when the kind never commits, so that an idempotency key means nothing to it.
        opens_table: False when the handler opens the table itself, by `JobContext.with_table`, since it may
            not have to; its context then has no snapshot.
    """

    name: str
    run: JobHandler
    help: str = ""
    params_schema: Mapping[str, Any] = field(default_factory=lambda: _NO_PARAMS, hash=False)
    needs_table: bool = True
    commits: bool = True
    opens_table: bool = True

    def check_params(self, params: Mapping[str, Any]) -> None:
        """Check a spec's parameters.

        Raises:
            InvalidJobSpecError: a parameter is missing, unknown or of a wrong type; all are named.
        """
        problems = list(violations(dict(params), self.params_schema, at="params"))
        if problems:
            raise InvalidJobSpecError(
                f"the parameters of this {self.name!r} job are not valid: {'; '.join(problems)}",
                fix="see docs/job-spec.schema.json",
            )


class JobRegistry:
    """Kinds by name. Entry points are loaded when a name is asked for that is not there yet."""

    def __init__(self, *, group: str | None = ENTRY_POINT_GROUP) -> None:
        self._kinds: dict[str, JobKind] = {}
        self._failures: dict[str, str] = {}
        self._group = group
        self._loaded = group is None

    def register(self, kind: JobKind) -> None:
        """Add a kind.

        Raises:
            ConfigurationError: the name is taken by another kind.
        """
        if self._kinds.setdefault(kind.name, kind) != kind:
            raise ConfigurationError(
                f"two job kinds are named {kind.name!r}", fix="rename the one that your package registers"
            )

    def get(self, name: str) -> JobKind:
        """The kind of that name.

        Raises:
            InvalidJobSpecError: there is none.
        """
        if name not in self._kinds:
            self._load_entry_points()
        kind = self._kinds.get(name)
        if kind is None:
            failed = "; ".join(f"{source}: {reason}" for source, reason in self._failures.items())
            raise InvalidJobSpecError(
                f"there is no job kind {name!r}",
                cause=f"these extensions did not load: {failed}" if failed else "",
                fix=f"choose one of {', '.join(sorted(self._kinds))}, or install what provides it",
            )
        return kind

    def kinds(self) -> tuple[JobKind, ...]:
        """Every kind, entry points included, sorted by name."""
        self._load_entry_points()
        return tuple(self._kinds[name] for name in sorted(self._kinds))

    def _load_entry_points(self) -> None:
        if self._loaded or self._group is None:
            return
        self._loaded = True
        for point in entry_points(group=self._group):
            self._load(point)

    def _load(self, point: EntryPoint) -> None:
        try:
            point.load()(self)
        except ConfigurationError:
            raise
        except Exception as error:  # a broken or half-installed extension must not disable the rest
            self._failures[point.name] = f"{type(error).__name__}: {error}"
            _LOGGER.warning(
                "an extension did not load", extra={"entry_point": point.value, "why": str(error)}
            )
