"""Errors of maintenance, jobs and leases."""

from __future__ import annotations

from delta_core.errors.base import DeltaError


class MaintenanceError(DeltaError):
    """A maintenance operation cannot run as asked."""

    code = "MAINTENANCE_ERROR"


class RetentionTooShortError(MaintenanceError):
    """The retention asked for could delete files that readers or writers still need."""

    code = "RETENTION_TOO_SHORT"


class RestoreError(MaintenanceError):
    """The table cannot be restored to the version."""

    code = "RESTORE_REFUSED"


class RestorePlanOutdatedError(RestoreError):
    """The table has versions that the restore's plan, which someone may have approved, did not see."""

    code = "RESTORE_PLAN_OUTDATED"
    conflict = True


class CloneError(MaintenanceError):
    """A table cannot be cloned to where it was asked to be."""

    code = "CLONE_REFUSED"


class CloneDivergedError(CloneError):
    """The target has a version that the source does not have, so the source's history is not its own."""

    code = "CLONE_DIVERGED"
    conflict = True


class CloneOutdatedError(CloneError):
    """The source's log was cleaned up while it was copied."""

    code = "CLONE_OUTDATED"
    retryable = True
    conflict = True


class VerificationError(MaintenanceError):
    """What was done does not match what was planned."""

    code = "VERIFICATION_FAILED"


class JobError(DeltaError):
    """A job cannot be run or did not succeed."""

    code = "JOB_ERROR"


class InvalidJobSpecError(JobError):
    """The job specification is malformed or of a newer format."""

    code = "INVALID_JOB_SPEC"


class JobFailedError(JobError):
    """The job ran and failed; its result holds the error."""

    code = "JOB_FAILED"


class QualitySuiteError(JobError):
    """A suite of expectations cannot be checked as it is; names the expectation."""

    code = "INVALID_QUALITY_SUITE"


class QualityGateError(JobError):
    """The data does not meet its suite of expectations; nothing of it was published."""

    code = "QUALITY_GATE_FAILED"


class LeaseError(DeltaError):
    """A lease or a reader's pin cannot be had or kept."""

    code = "LEASE_ERROR"


class LeaseHeldError(LeaseError):
    """Another holder has the lease; the message says who, and when it ends."""

    code = "LEASE_HELD"
    retryable = True


class LeaseLostError(LeaseError):
    """The lease ended or was taken over while its holder worked; nothing was committed since."""

    code = "LEASE_LOST"


class LeaseFileError(LeaseError):
    """A file of a lease or a pin is damaged or of a newer format; the message names it."""

    code = "INVALID_LEASE_FILE"
