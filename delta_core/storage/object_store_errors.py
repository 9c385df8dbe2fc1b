"""Translation of an object store client's exceptions, without secrets.

A write that failed with a status of 400 to 499 was not carried out, except for the statuses that mean *not
now*. A write whose server redirects to another server, as for a bucket in another region, was not carried
out either. After any other failure it is not known whether the write was carried out.
"""

from __future__ import annotations

import re

from obstore import exceptions

from delta_core.errors import (
    AmbiguousWriteError,
    ObjectExistsError,
    ObjectNotFoundError,
    StorageError,
    StorePermissionError,
    WriteRefusedError,
)

_STATUS = re.compile(r"\bstatus(?: code)?:? (\d{3})\b", re.IGNORECASE)
# The last three are statuses of proxies: one side closed the connection, the outcome is not known.
_NOT_NOW = frozenset({408, 409, 412, 425, 429, 444, 460, 499})
_NOT_IMPLEMENTED = 501
# Not 303: it may be the answer to a write that was carried out.
_ELSEWHERE = frozenset({301, 302, 307, 308})
_NOWHERE = "Received redirect without LOCATION"
_QUERY = re.compile(r"\?[^\s\"'<>)]*")
# The value of a header includes the part after the name of its scheme.
_HEADER = re.compile(r"(?i)(?<![a-z])(authorization|cookie)(\s{0,9}[=:]\s{0,9}|>)[^\"'<>,;&)]{1,4000}")
_SCHEME = re.compile(r"(?i)(?<![a-z])(bearer|basic)(\s{1,9})[^\s\"'<>,;&)]+")
_SIGNED = re.compile(
    r"(?i)(?<![a-z])(signature|credential|sig|token|x-amz-[a-z-]{1,60}|secret[a-z_-]{0,60}|passw(?:or)?d|pwd"
    r"|account_?key|api[_-]?key|session|jwt)"
    r"([\"'\\]{0,4}\s{0,9}[=:]\s{0,9}[\"'\\]{0,4}|>)[^\s\"'<>,;&)\\]+"
)
_PROGRAM = re.compile(r"(External AWS credential provider: \w{1,100})[^\n]{0,100000}")
_ANSWER = re.compile(r"<Code>([A-Za-z0-9.]{1,100})</Code>\s*(?:<Message>([^<]{1,400}))?")
_BODY = re.compile(r"(status code: \d{3}(?: [a-z' -]{1,40})?): .*", re.IGNORECASE | re.DOTALL)
_MESSAGE = re.compile(r'"message"\s{0,9}:\s{0,9}"([^"\\]{1,400})')
_NO_BUCKET = re.compile(r"NoSuchBucket|ContainerNotFound|The specified bucket does not exist")
# The services that provide credentials: of Amazon's machines, containers and pods, of Google, of Azure.
_METADATA_SERVICE = re.compile(
    r"\bperforming [A-Z]{3,7} http://(?:169\.254\.\d{1,3}\.\d{1,3}|\[fd00:ec2::\w{1,4}\]|metadata(?:\.google\.internal)?)[:/]"
)
_MAX_CHARACTERS = 600


def read_error(error: Exception, path: str, *, verb: str) -> StorageError:
    """The error for a request that changes nothing."""
    if _without_credentials(error):
        return _no_credentials(error, path, verb)
    if isinstance(error, exceptions.NotFoundError | FileNotFoundError):
        return ObjectNotFoundError(
            f"{path!r} does not exist.", fix="Check the path, or open the table again."
        )
    if _is_denied(error):
        return _denied(error, path, verb)
    missing = _NO_BUCKET.search(str(error)) is not None
    return StorageError(
        f"Could not {verb} {path!r}.",
        cause=redacted(str(error)),
        fix="Create the bucket, or check its name."
        if missing
        else "Check the store, then repeat the operation.",
    )


def write_error(error: Exception, path: str, *, verb: str = "write") -> StorageError:
    """The error for a write that may be repeated unchanged."""
    if isinstance(error, exceptions.NotFoundError | FileNotFoundError):
        return _refused(error, path)
    return read_error(error, path, verb=verb)


def create_error(error: Exception, path: str) -> StorageError:
    """The error for a create-only write: the outcome is known only when the store reported it."""
    if isinstance(error, exceptions.AlreadyExistsError | exceptions.PreconditionError):
        return ObjectExistsError(f"{path!r} exists already.", fix="Read it to see which writer created it.")
    definite = _is_definite(_status_of(error))
    if definite and _without_credentials(error):
        return _no_credentials(error, path, "create")
    if _is_denied(error):
        return _denied(error, path, "create")
    # Amazon answers 400 when a body arrives too slowly; the next attempt may be quicker.
    definite = (definite and "RequestTimeout" not in str(error)) or _is_redirected(error)
    if definite or isinstance(
        error, exceptions.NotFoundError | FileNotFoundError | exceptions.NotSupportedError
    ):
        return _refused(error, path)
    return AmbiguousWriteError(
        f"It is not known whether {path!r} was created.",
        cause=redacted(str(error)),
        fix="Read the object to see whether it was created.",
    )


def redacted(text: str) -> str:
    """A client's message without queries and signatures, with a limited length, on one line.

    Of a store's response only the code and the message are kept, from XML or JSON. A response without them
    may come from a gateway that repeats the request, and is removed.
    """
    answer = _ANSWER.search(text)
    if answer is not None:
        text = f"{text[: answer.start()].partition(': <')[0]}: {answer.group(1)}. {answer.group(2) or ''}"
    elif (body := _BODY.search(text)) is not None:
        message = _MESSAGE.search(body.group(0))
        text = text[: body.end(1)] + (f": {message.group(1)}" if message else "")
    # The rest is the client's debug output of its requests, many times as long.
    plain = _QUERY.sub("?...", text.partition("Debug source:")[0])
    # The output of a credentials program may contain anything.
    plain = _PROGRAM.sub(r"\1", plain)
    for secret in (_HEADER, _SCHEME, _SIGNED):
        plain = secret.sub(r"\1\2...", plain)
    plain = " ".join("".join(sign if sign.isprintable() else " " for sign in plain).split())
    return plain if len(plain) <= _MAX_CHARACTERS else plain[:_MAX_CHARACTERS] + " ..."


def _is_denied(error: Exception) -> bool:
    return isinstance(error, exceptions.PermissionDeniedError | exceptions.UnauthenticatedError) or (
        _status_of(error) in (401, 403)
    )


def _is_definite(status: int | None) -> bool:
    return status is not None and (
        (400 <= status < 500 and status not in _NOT_NOW) or status == _NOT_IMPLEMENTED
    )


def _is_redirected(error: Exception) -> bool:
    """Whether a server redirected the request and it was not followed. Amazon may not name the target."""
    return not _without_credentials(error) and (
        _status_of(error) in _ELSEWHERE or _NOWHERE in str(error).partition("Debug source:")[0]
    )


def _without_credentials(error: Exception) -> bool:
    """Whether the client's own request for credentials failed, its last source of credentials."""
    # The server's response comes after the first dash; paths have no blanks.
    return _METADATA_SERVICE.search(str(error).partition(" - ")[0]) is not None


def _no_credentials(error: Exception, path: str, verb: str) -> StorageError:
    """The error for missing credentials: permanent after a definite status, else the service may be busy."""
    kind = StorePermissionError if _is_definite(_status_of(error)) else StorageError
    return kind(
        f"Could not {verb} {path!r}: no credentials were found.",
        cause="No option and no environment variable is set, and this machine's metadata service returned "
        f"none ({redacted(str(error)).rpartition(' - ')[2]}).",
        fix="Pass credentials as storage options or in the environment. See docs/stores.md.",
    )


def _denied(error: Exception, path: str, verb: str) -> StorePermissionError:
    return StorePermissionError(
        f"No permission to {verb} {path!r}.",
        cause=redacted(str(error)),
        fix="Check the credentials and their permissions below the table's root.",
    )


def _refused(error: Exception, path: str) -> WriteRefusedError:
    return WriteRefusedError(
        f"The store refused to write {path!r}. Nothing was written.",
        cause=redacted(str(error)),
        fix="Check the bucket's name, the region and the endpoint.",
    )


def _status_of(error: Exception) -> int | None:
    match = _STATUS.search(str(error))
    return int(match.group(1)) if match else None
