"""The gate between staging and publishing: write, audit, publish.

The rows are staged in the table's directory, in files that no version refers to, so no reader sees them
during the validation. The result of the suite decides whether the publishing commit adds all rows, only the
good rows, or nothing.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from delta_core.actions import SetTransaction
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import ConcurrentTransactionError, DeltaError, QualityGateError, TableNotFoundError
from delta_core.execution.progress import SILENT, ProgressReporter
from delta_core.jobs.params.quality import QualityEngine, QualityParams
from delta_core.schema.types import StructType
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage import LogStore, open_store, options_for
from delta_core.transaction import CommitProperties, already_applied
from spark_jobs.quality.driver_engine import DriverEngine
from spark_jobs.quality.evaluation import evaluate
from spark_jobs.quality.outcome import ExpectationOutcome
from spark_jobs.quality.provenance import with_quality
from spark_jobs.quality.quarantine import BadRows, Quarantine, names_by_row
from spark_jobs.quality.rejected import MistypedRows, RejectedRows
from spark_jobs.quality.report import ReportUris, build_report, uris_of, write_report
from spark_jobs.quality.spark_engine import SparkEngine
from spark_jobs.quality.suite import PlannedExpectation, plan_suite, require_evaluated
from spark_jobs.quality.verdict import GateOutcome, Verdict, decide
from spark_jobs.writer.staged_files import StagedFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)

QUARANTINE_PATH = "_deltaward/quarantine"
REPORT_PATH = "_deltaward/quality"
DRIVER_ROWS: Final = 1_000_000
"""With the engine `auto`, the driver evaluates a batch of fewer rows, and Spark's tasks a larger batch."""

_MAX_NAMED_FAILURES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class GateContext:
    """The load whose batch the gate validates.

    Attributes:
        store: the loaded table's store.
        job_id: the job's id; it names the reports.
        txn: the load's idempotency key, which names the batch. Without a key the job id names the batch.
        source: the origin of the rows, for display.
        user_metadata: provenance for the quarantine's commit.
        session: returns the Spark session, when Spark's tasks evaluate the suite.
        storage_options: options for the stores of the quarantine and the reports.
        replaces_rows: whether the commit removes rows.
    """

    store: LogStore
    job_id: str
    session: Callable[[], SparkSession]
    txn: SetTransaction | None = None
    source: str = ""
    user_metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    storage_options: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)
    replaces_rows: bool = False
    reporter: ProgressReporter = SILENT
    clock: Clock = SYSTEM_CLOCK

    @property
    def batch(self) -> str:
        """The batch's name in the quarantine. It is the same for every try of the load."""
        if self.txn is None:
            return self.job_id
        return f"{self.txn.app_id}@{self.txn.version}" if self.txn.version else self.txn.app_id


class QualityGate:
    """The gate (`CommitGate`) for one batch of a load, by a suite of expectations.

    Attributes:
        output: the gate's part of the job's output, after the decision.
        reports: the URIs of the reports, after the decision.
        rejected: collects the rows that violate the contract, when they go to quarantine; None when such a
            row fails the load.
    """

    def __init__(
        self,
        params: QualityParams,
        context: GateContext,
        *,
        mistyped: MistypedRows | None = None,
        driver_rows: int = DRIVER_ROWS,
    ) -> None:
        self._params = params
        self._context = context
        self._mistyped = mistyped
        self._driver_rows = driver_rows
        self._planned: tuple[PlannedExpectation, ...] = ()
        self._quarantine: Quarantine | None = None
        self._tries = 0
        self._has_quarantined = False
        self.output: dict[str, Any] = {}
        self.reports: ReportUris | None = None
        self.rejected = RejectedRows() if params.keeps_rejected else None

    def prepare(self, schema: StructType) -> None:
        """Check the suite and the quarantine table for rows of this schema. Writes nothing.

        Raises:
            QualitySuiteError: an expectation cannot be evaluated. The error names the expectation.
        """
        self._planned = plan_suite(self._params, schema)
        uri = self._params.quarantine_uri or f"{self._context.store.uri}/{QUARANTINE_PATH}"
        self._quarantine = Quarantine(
            uri,
            batch=self._context.batch,
            schema=schema,
            source=self._context.source,
            storage_options=options_for(uri, self._context.storage_options),
            clock=self._context.clock,
        )
        if self.rejected is not None:
            self._quarantine.check()

    def audit(self, staged: StagedFiles) -> StagedFiles | None:
        """Validate the staged rows and apply the policy, up to but excluding the publishing commit.

        Returns:
            The files to publish; None when another try has already published the batch.

        Raises:
            QualityGateError: the batch must not be published.
            QualitySuiteError: an expectation could not be evaluated.
            DeltaError: Spark or a store failed. The caller deletes the files and calls `retract`.
        """
        assert self._quarantine is not None  # prepare comes first
        reporter = self._context.reporter
        reporter.emit("quality.validating", rows=staged.rows, expectations=len(self._planned))
        if self.rejected is not None and self._mistyped is not None:
            self.rejected.add_mistyped(self._mistyped, staged.schema)
        engine, outcomes = self._evaluate(staged)
        require_evaluated(outcomes, shows_values=self._params.samples > 0)
        verdict = decide(
            self._params,
            outcomes,
            staged_rows=staged.rows,
            rejected_rows=0 if self.rejected is None else self.rejected.rows,
            replaces_rows=self._context.replaces_rows,
        )
        reporter.emit("quality.validated", outcome=verdict.outcome.value, bad_rows=verdict.bad_rows)
        self._tries = self._quarantine.tries()
        if self._is_published():
            return None
        bad: list[BadRows] = []
        if verdict.outcome is GateOutcome.QUARANTINED:
            bad = [] if self.rejected is None else self.rejected.load()
            bad += _bad_rows(staged, verdict, outcomes)
            staged = staged.without(verdict.bad_positions)
        reporter.emit("quarantine.before", rows=sum(part.rows.num_rows for part in bad))
        version = self._quarantine.replace_batch(
            bad, after=self._tries, user_metadata=self._provenance(verdict)
        )
        reporter.emit("quarantine.after", version=version)
        self._tries += version is not None
        self._has_quarantined = bool(bad)
        self._report(verdict, outcomes, engine, version)
        if verdict.outcome is GateOutcome.FAILED:
            raise self._refusal(verdict, outcomes)
        return staged

    def require_undisturbed(self) -> None:
        """Check that the quarantine still has this try's rows. Call this right before the publishing commit.

        Raises:
            ConcurrentTransactionError: another try of the load has replaced the rows.
        """
        if self._has_quarantined and self._quarantine is not None and self._quarantine.tries() != self._tries:
            raise ConcurrentTransactionError(
                f"Another try of this load has replaced its rows in the quarantine {self._quarantine.uri}.",
                cause=f"The other try ran at the same time, for the batch {self._context.batch!r}. A commit "
                "now would lose the quarantined rows.",
                fix="Run the job again. It then finds the rows of the other try.",
            )

    def with_outcome(self, properties: CommitProperties) -> CommitProperties:
        """The properties with the gate's metrics in `user_metadata`."""
        return with_quality(properties, self.output)

    def retract(self) -> None:
        """Delete the batch's rows from the quarantine, because the batch was not published.

        Best effort: a retry of the load replaces the rows anyway. Does nothing when the quarantine has no
            rows of the batch, or when another try of the load has published the batch.
        """
        if self._quarantine is None or not self._has_quarantined:
            return
        self._has_quarantined = False
        try:
            if self._is_published():
                return
            self._quarantine.replace_batch([], after=self._tries, user_metadata=None)
        except DeltaError as error:
            _log.warning(
                "The quarantined rows of an unpublished batch could not be deleted.",
                extra={"batch": self._context.batch, "error": str(error)},
            )

    def _evaluate(self, staged: StagedFiles) -> tuple[QualityEngine, list[ExpectationOutcome]]:
        engine_kind = self._params.engine
        if engine_kind is QualityEngine.AUTO:
            engine_kind = QualityEngine.DRIVER if staged.rows < self._driver_rows else QualityEngine.SPARK
        samples = self._params.samples
        # Spark needs at least one file.
        if engine_kind is not QualityEngine.SPARK or not staged.adds:
            engine_kind = QualityEngine.DRIVER if engine_kind is QualityEngine.SPARK else engine_kind
            return engine_kind, evaluate(DriverEngine(staged), staged, self._planned, samples=samples)
        engine = SparkEngine(self._context.session(), staged)
        try:
            return engine_kind, evaluate(engine, staged, self._planned, samples=samples)
        finally:
            engine.close()

    def _is_published(self) -> bool:
        """Whether another try of the load has published the batch during this try."""
        if self._context.txn is None:
            return False
        try:
            snapshot = Snapshot.load(self._context.store, clock=self._context.clock)
        except TableNotFoundError:
            return False
        return already_applied(snapshot, self._context.txn) is not None

    def _report(
        self,
        verdict: Verdict,
        outcomes: Sequence[ExpectationOutcome],
        engine: QualityEngine,
        version: int | None,
    ) -> None:
        context, params = self._context, self._params
        uri = params.report_uri or f"{context.store.uri}/{REPORT_PATH}"
        options = options_for(uri, context.storage_options)
        report_store = open_store(uri, storage_options=options, clock=context.clock)
        name = re.sub(r"[^\w-]", "_", context.job_id)[:128]
        reports = uris_of(report_store, name)
        quarantined = verdict.bad_rows if verdict.outcome is GateOutcome.QUARANTINED else 0
        published = 0 if verdict.outcome is GateOutcome.FAILED else verdict.rows - quarantined
        assert self._quarantine is not None
        output = {
            "outcome": verdict.outcome.value,
            "suite": params.suite,
            "expectations": len(outcomes),
            "failed_expectations": [outcome.name for outcome in outcomes if not outcome.success],
            "rows": verdict.rows,
            "bad_rows": verdict.bad_rows,
            "published_rows": published,
            "quarantined_rows": quarantined,
            "report_json": reports.json,
            "report_html": reports.html,
            "quarantine_uri": self._quarantine.uri if quarantined else None,
            "quarantine_version": version if quarantined else None,
        }
        document = build_report(
            summary=output,
            outcomes=outcomes,
            samples=params.samples,
            table_uri=context.store.uri,
            job_id=context.job_id,
            engine=engine.value,
            policy={
                "on_failure": params.on_failure.value,
                "max_bad_rows": params.max_bad_rows,
                "max_bad_fraction": params.max_bad_fraction,
            },
            why=verdict.why,
            rejected_rows=0 if self.rejected is None else self.rejected.rows,
            created_ms=context.clock.now_ms(),
        )
        self.output = output
        self.reports = write_report(report_store, name, document)

    def _refusal(self, verdict: Verdict, outcomes: Sequence[ExpectationOutcome]) -> QualityGateError:
        failed = [outcome.name for outcome in outcomes if outcome.blocks]
        if self.rejected is not None and self.rejected.rows:
            failed.append("the contract")
        named = ", ".join(failed[:_MAX_NAMED_FAILURES])
        more = f" and {len(failed) - _MAX_NAMED_FAILURES} more" if len(failed) > _MAX_NAMED_FAILURES else ""
        at_least = "" if verdict.exact else "At least "
        failures = f": {named}{more}" if failed else ""
        report = self.reports.html if self.reports is not None else ""
        return QualityGateError(
            f"The batch does not meet the suite {self._params.suite!r}{failures}.",
            cause=f"{at_least}{verdict.bad_rows} of {verdict.rows} rows are bad, and {verdict.why}.",
            fix=f"Read the report {report}, then correct the source or the suite. Nothing was committed.",
        )

    def _provenance(self, verdict: Verdict) -> str:
        quality = {
            "table": self._context.store.uri,
            "suite": self._params.suite,
            "batch": self._context.batch,
            "outcome": verdict.outcome.value,
        }
        return json.dumps({**self._context.user_metadata, "quality": quality})


def _bad_rows(staged: StagedFiles, verdict: Verdict, outcomes: Sequence[ExpectationOutcome]) -> list[BadRows]:
    positions = verdict.bad_positions
    if not len(positions):
        return []
    found = [(o.name, o.rows) for o in outcomes if o.blocks and o.rows is not None]
    names = names_by_row(positions, found)
    return [
        BadRows(
            rows=staged.take(positions),
            reasons=[f"does not meet {', '.join(row)}" for row in names],
            expectations=names,
        )
    ]
