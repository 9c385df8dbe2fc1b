"""What a store's answer says about a write, and what of it may be repeated."""

from __future__ import annotations

import pytest
from obstore import exceptions

from delta_core.errors import (
    AmbiguousWriteError,
    ObjectExistsError,
    ObjectNotFoundError,
    StorageError,
    StorePermissionError,
    WriteRefusedError,
)
from delta_core.storage.object_store_errors import create_error, read_error, redacted, write_error


def answer(status: int, reason: str, code: str = "") -> exceptions.GenericError:
    body = f': <?xml version="1.0"?><Error><Code>{code}</Code><Message>m</Message></Error>' if code else ""
    return exceptions.GenericError(
        f"Generic S3 error: Error performing PUT http://h/b/k in 1ms - Server returned non-2xx status code: "
        f"{status} {reason}{body}"
    )


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (exceptions.AlreadyExistsError("x"), ObjectExistsError),
        (exceptions.PreconditionError("x"), ObjectExistsError),
        (exceptions.PermissionDeniedError("x"), StorePermissionError),
        (exceptions.UnauthenticatedError("x"), StorePermissionError),
        (answer(403, "Forbidden"), StorePermissionError),
        (answer(400, "Bad Request", "ExpiredToken"), WriteRefusedError),
        (answer(400, "Bad Request", "RequestTimeout"), AmbiguousWriteError),
        (answer(404, "Not Found", "NoSuchBucket"), WriteRefusedError),
        (exceptions.NotFoundError("x"), WriteRefusedError),
        (answer(501, "Unknown Header"), WriteRefusedError),
        (answer(301, "Moved Permanently"), WriteRefusedError),
        (answer(307, "Temporary Redirect"), WriteRefusedError),
        (answer(308, "Permanent Redirect"), WriteRefusedError),
        (exceptions.GenericError("in 1ms - Received redirect without LOCATION, this"), WriteRefusedError),
        (answer(300, "Multiple Choices"), AmbiguousWriteError),
        (answer(303, "See Other"), AmbiguousWriteError),
        (answer(409, "Conflict"), AmbiguousWriteError),
        (answer(412, "Precondition Failed"), AmbiguousWriteError),
        (answer(429, "Too Many Requests"), AmbiguousWriteError),
        (answer(460, "Client Closed"), AmbiguousWriteError),
        (answer(499, "Client Closed Request"), AmbiguousWriteError),
        (answer(500, "Internal Server Error"), AmbiguousWriteError),
        (answer(503, "Slow Down"), AmbiguousWriteError),
        (exceptions.GenericError("connection reset"), AmbiguousWriteError),
        (TimeoutError("timed out"), AmbiguousWriteError),
    ],
)
def test_only_a_clear_refusal_says_that_nothing_was_created(
    error: Exception, kind: type[StorageError]
) -> None:
    assert type(create_error(error, "_delta_log/1.json")) is kind


def test_what_is_read_is_missing_denied_or_trouble() -> None:
    assert type(read_error(exceptions.NotFoundError("x"), "p", verb="read")) is ObjectNotFoundError
    assert type(read_error(FileNotFoundError("x"), "p", verb="read")) is ObjectNotFoundError
    assert type(read_error(answer(403, "Forbidden"), "p", verb="read")) is StorePermissionError
    trouble = read_error(answer(404, "Not Found", "NoSuchBucket"), "p", verb="list")
    assert (type(trouble), trouble.fix) == (StorageError, "Create the bucket, or check its name.")
    assert type(write_error(exceptions.NotFoundError("x"), "p")) is WriteRefusedError


def test_signatures_queries_and_the_client_s_own_view_are_left_out() -> None:
    text = (
        "Error performing GET https://h/b/k?sig=hunter2&se=1 Authorization: AWS4hunter2 "
        "X-Amz-Security-Token=hunter2 <Signature>hunter2</Signature> \x1b[31m\nDebug source: hunter2"
    )
    plain = redacted(text)
    assert "hunter2" not in plain
    assert "https://h/b/k?..." in plain
    assert plain.isprintable()


def test_of_an_answer_in_xml_the_code_and_the_message_are_left() -> None:
    plain = redacted(str(answer(403, "Forbidden", "SignatureDoesNotMatch")))
    assert plain.endswith("403 Forbidden: SignatureDoesNotMatch. m")


def test_a_long_message_is_cut() -> None:
    assert len(redacted("x" * 10_000)) < 700


def unfurnished(url: str, said: str) -> exceptions.GenericError:
    """As the client words it when it finds no credentials anywhere."""
    return exceptions.GenericError(
        f"Generic S3 error: Error performing token request: Error performing PUT {url} in 8.7ms - {said}\n\n"
        "Debug source:\nGeneric { body: Some(...) }"
    )


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/api/token",
        "http://169.254.169.254/metadata/identity/oauth2/token?resource=https%3A%2F%2Fstorage.azure.com",
        "http://metadata.google.internal/computeMetadata/v1/instance/service-accounts/default/token",
        "http://metadata/computeMetadata/v1/instance/service-accounts/default/token",
        "http://169.254.170.2/v2/credentials/1",
        "http://[fd00:ec2::23]/v1/credentials",
    ],
)
def test_that_there_are_no_credentials_is_said(url: str) -> None:
    for status in ("403 Forbidden", "404 Not Found", "401 Unauthorized"):
        error = unfurnished(url, f"Server returned non-2xx status code: {status}: denied destination")
        for found in (
            read_error(error, "_delta_log", verb="list"),
            write_error(error, "x"),
            create_error(error, "x"),
        ):
            assert type(found) is StorePermissionError
            assert found.problem.endswith("no credentials were found.")
            assert (
                "no environment variable is set, and this machine's metadata service returned none"
                in found.cause
            )
            assert status in found.cause
            assert "169.254" not in str(found)


def test_a_metadata_service_that_does_not_answer_may_do_so_later() -> None:
    for said in (
        "HTTP error: error sending request",
        "Server returned non-2xx status code: 503 Service Unavailable",
    ):
        error = unfurnished("http://169.254.169.254/latest/api/token", said)
        found = read_error(error, "_delta_log", verb="list")
        assert (type(found), found.retryable) == (StorageError, True)
        assert found.problem.endswith("no credentials were found.")
        assert type(create_error(error, "x")) is AmbiguousWriteError


def test_a_server_s_answer_does_not_pass_for_missing_credentials() -> None:
    said = "Error performing GET http://169.254.169.254/latest/api/token in 1ms - 403 Forbidden"
    error = exceptions.GenericError(
        f"Generic S3 error: Error performing GET https://h/b/k in 1ms - Server returned error: {said}"
    )
    assert "no credentials" not in str(read_error(error, "p", verb="read"))


@pytest.mark.parametrize(
    "answer_text",
    [
        "<Error><Code>AccessDenied</Code><Message>bad Authorization: Bearer SEKRIT.a</Message></Error>",
        "<Error><Code>X</Code><Message>authorization: A key=SEKRIT, Signature=SEKRIT</Message></Error>",
        '{"message":"Authorization: Bearer SEKRIT"}',
        '{"error":"Bearer SEKRIT"}',
        "<Error><Code>X</Code><Message>cookie: a=SEKRIT; x-api-key: SEKRIT passwd=SEKRIT</Message></Error>",
        '<Error><Code>X</Code><Message>id_token: "SEKRIT" session=SEKRIT pwd=SEKRIT</Message></Error>',
        "<Error><Code>SEKRIT x-ms-foo:SEKRIT</Code></Error>",
    ],
)
def test_what_an_answer_repeats_of_a_request_is_left_out(answer_text: str) -> None:
    shown = redacted(f"Error performing PUT http://h/b/k - status code: 403 Forbidden: {answer_text}")
    assert "SEKRIT" not in shown
    assert "403 Forbidden" in shown


def test_what_a_program_for_credentials_prints_is_left_out() -> None:
    shown = redacted("Generic S3 error: External AWS credential provider: CredentialRetrievalError: SEKRIT")
    assert "CredentialRetrievalError" in shown
    assert "SEKRIT" not in shown
