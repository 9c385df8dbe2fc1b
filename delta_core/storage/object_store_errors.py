"""What an object store's client raised, as our errors, without what may be secret.

A write that is refused with a status of 400 to 499 was not carried out, but for those statuses that say
*not now*; nor was one whose server says that another is to be asked, as for a bucket in another region.
Everything else leaves open whether it was.
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
# The last three are proxies' own: that a side hung up, not what became of the request.
_NOT_NOW = frozenset({408, 409, 412, 425, 429, 444, 460, 499})
_NOT_IMPLEMENTED = 501
# Not 303: that the answer is elsewhere may be said of what was done.
_ELSEWHERE = frozenset({301, 302, 307, 308})
_NOWHERE = "Received redirect without LOCATION"
_QUERY = re.compile(r"\?[^\s\"'<>)]*")
# A header's value goes on behind the name of its scheme.
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
# Where clouds hand out credentials: Amazon's machines, containers and pods, Google's, Azure's.
_METADATA_SERVICE = re.compile(
    r"\bperforming [A-Z]{3,7} http://(?:169\.254\.\d{1,3}\.\d{1,3}|\[fd00:ec2::\w{1,4}\]|metadata(?:\.google\.internal)?)[:/]"
)
_MAX_CHARACTERS = 600


def read_error(error: Exception, path: str, *, verb: str) -> StorageError:
    """For a request that changes nothing."""
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
        fix="Create the bucket, or check its name." if missing else "Check the store, then try again.",
    )


def write_error(error: Exception, path: str, *, verb: str = "write") -> StorageError:
    """For a write that may be made again as it is."""
    if isinstance(error, exceptions.NotFoundError | FileNotFoundError):
        return _refused(error, path)
    return read_error(error, path, verb=verb)


def create_error(error: Exception, path: str) -> StorageError:
    """For a create-only write: its outcome is known only where the store said so."""
    if isinstance(error, exceptions.AlreadyExistsError | exceptions.PreconditionError):
        return ObjectExistsError(f"{path!r} exists already.", fix="Read it to see whose it is.")
    definite = _is_definite(_status_of(error))
    if definite and _without_credentials(error):
        return _no_credentials(error, path, "create")
    if _is_denied(error):
        return _denied(error, path, "create")
    # Amazon answers 400 to a body that came too slowly; the next attempt may be quicker.
    definite = (definite and "RequestTimeout" not in str(error)) or _is_redirected(error)
    if definite or isinstance(
        error, exceptions.NotFoundError | FileNotFoundError | exceptions.NotSupportedError
    ):
        return _refused(error, path)
    return AmbiguousWriteError(
        f"Whether {path!r} was created cannot be told.", cause=redacted(str(error)), fix="Read it back."
    )


def redacted(text: str) -> str:
    """A client's message without queries and signatures, of bounded length, in one line.

    Of a store's answer only the code and the message are left, in XML or in JSON; an answer without them may
    be a gateway's that repeats the request, and is left out.
    """
    answer = _ANSWER.search(text)
    if answer is not None:
        text = f"{text[: answer.start()].partition(': <')[0]}: {answer.group(1)}. {answer.group(2) or ''}"
    elif (body := _BODY.search(text)) is not None:
        message = _MESSAGE.search(body.group(0))
        text = text[: body.end(1)] + (f": {message.group(1)}" if message else "")
    # What follows is the client's own view of its requests, many times as long.
    plain = _QUERY.sub("?...", text.partition("Debug source:")[0])
    # What a program for credentials printed may be anything.
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
    """Whether a server sent the request elsewhere, and nobody followed; Amazon may not say where."""
    return not _without_credentials(error) and (
        _status_of(error) in _ELSEWHERE or _NOWHERE in str(error).partition("Debug source:")[0]
    )


def _without_credentials(error: Exception) -> bool:
    """Whether what failed is the client's own request for credentials, the last place where it looks."""
    # What a server answers comes after the first dash; paths have no blanks.
    return _METADATA_SERVICE.search(str(error).partition(" - ")[0]) is not None


def _no_credentials(error: Exception, path: str, verb: str) -> StorageError:
    """A service that says that it has none will say so again; one that does not answer may be busy."""
    kind = StorePermissionError if _is_definite(_status_of(error)) else StorageError
    return kind(
        f"Could not {verb} {path!r}: no credentials were found.",
        cause="There is no option, no environment variable, and this machine's metadata service gave none "
        f"({redacted(str(error)).rpartition(' - ')[2]})",
        fix="Pass credentials as storage options or in the environment; docs/stores.md lists both.",
    )


def _denied(error: Exception, path: str, verb: str) -> StorePermissionError:
    return StorePermissionError(
        f"No permission to {verb} {path!r}.",
        cause=redacted(str(error)),
        fix="Check the credentials and what they allow below the table's root.",
    )


def _refused(error: Exception, path: str) -> WriteRefusedError:
    return WriteRefusedError(
        f"The store refused to write {path!r}; nothing was written.",
        cause=redacted(str(error)),
        fix="Check the bucket's name, the region and the endpoint.",
    )


def _status_of(error: Exception) -> int | None:
    found = _STATUS.search(str(error))
    return int(found.group(1)) if found else None
