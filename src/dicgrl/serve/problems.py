"""Errors as problem+json (RFC 9457): what is wrong, in which field, and nothing of the machine."""

from __future__ import annotations

import errno
import json
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from dicgrl.errors import BusyError, DataError, SetupError, UnknownLabelError, UserError, shown

MEDIA_TYPE = "application/problem+json"
_TITLES = {
    400: "Bad request",
    401: "No valid token",
    403: "Writing is not allowed here",
    404: "Not found",
    405: "Method not allowed",
    408: "Too slow",
    413: "Too large",
    421: "Unknown host name",
    422: "Invalid request",
    431: "Too large a head",
    500: "Internal error",
    503: "Unavailable at the moment",
    507: "The disk is full",
}


class ProblemError(Exception):
    """What is wrong with a request, or why it cannot be answered.

    Args:
        status: The HTTP status.
        detail: One sentence that says what to do.
        field: The field of the body or query that is at fault, such as `questions[0].head`.
        headers: Further headers of the answer.
    """

    def __init__(
        self, status: int, detail: str, field: str = "", headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.field = status, detail, field
        self.headers = headers or {}

    def content(self) -> dict[str, Any]:
        """What the answer says."""
        told: dict[str, Any] = {
            "type": "about:blank",
            "title": _TITLES.get(self.status, "Problem"),
            "status": self.status,
            "detail": self.detail,
        }
        if self.field:
            told["field"] = self.field
        return told

    def response(self) -> Response:
        """The answer to the request."""
        return Response(self.body(), self.status, self.headers, MEDIA_TYPE)

    def body(self) -> bytes:
        """The body of the answer."""
        return json.dumps(self.content(), ensure_ascii=True).encode()


def problem_of(error: Exception, field: str = "") -> ProblemError:
    """What to say of an error; paths and other secrets of the machine stay here.

    Example:
        >>> problem_of(SetupError("no room in /var/models")).content()["detail"]
        'the server lacks a library, memory or disk space that this needs'
    """
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, ValidationError):
        return _of_schema(error)
    if isinstance(error, ClientDisconnect):  # nobody reads it; it is counted
        return ProblemError(400, "the connection ended before the request")
    if isinstance(error, BusyError):
        return ProblemError(
            503, "another process is writing to the run", headers={"Retry-After": "1"}
        )
    if isinstance(error, DataError):  # of the run: its message names files
        return ProblemError(503, "the run cannot be read at the moment")
    if isinstance(error, SetupError):  # a library or memory: nothing that the request could change
        return ProblemError(503, "the server lacks a library, memory or disk space that this needs")
    if isinstance(error, UnknownLabelError):
        return ProblemError(422, error.args[0], field)  # without a search for similar ones
    if isinstance(error, UserError):
        return ProblemError(422, str(error), field)
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return ProblemError(507, "the disk is full: nothing was kept")
    if isinstance(error, TimeoutError):
        return ProblemError(503, "this took longer than a request may take; ask for less", field)
    if isinstance(error, OSError):
        return ProblemError(503, "the disk cannot be written to or read: nothing was kept")
    return ProblemError(500, "something went wrong; the server's log says what")


def _of_schema(error: ValidationError) -> ProblemError:
    """The first thing that does not fit, by its place in the body."""
    found = error.errors(include_url=False, include_context=False)[0]
    field, one_of = "", False
    for step in found["loc"]:
        one_of = _is_kind(step)
        if not one_of:
            field += f"[{step}]" if isinstance(step, int) else f".{step}" if field else str(step)
    given = found.get("input")
    if one_of and found["type"].endswith("_type"):  # the message is of one kind out of several
        more = "a list of labels" if field == "among" else "a whole number"
        found["msg"] = f"Input should be a text or {more}"
    said = f", not {shown(str(given), 40)}" if isinstance(given, str | int | float) else ""
    if found["type"] == "json_invalid":
        return ProblemError(
            400, f"the body is not JSON: {found['msg'].removeprefix('Invalid JSON: ')}"
        )
    return ProblemError(422, found["msg"] + said, field)


def _is_kind(step: int | str) -> bool:
    """Whether a step is no place in the body, but a kind of value that may stand there."""
    return isinstance(step, str) and step.startswith(("constrained-", "list["))


def add_problems(app: FastAPI) -> None:
    """Let every error of an application leave as problem+json."""

    @app.exception_handler(RequestValidationError)
    async def of_query(_: Request, error: RequestValidationError) -> Response:
        found = error.errors()[0]
        field = ".".join(str(step) for step in found["loc"][1:])
        return ProblemError(422, str(found["msg"]), field).response()

    @app.exception_handler(HTTPException)
    async def of_http(request: Request, error: HTTPException) -> Response:
        status, headers = error.status_code, dict(error.headers or {})
        known = app.openapi()["paths"].get(request.url.path, {})
        if known and status in (404, 405):  # told of the page's files, which were looked for, too
            status, headers = 405, {"Allow": ", ".join(sorted(map(str.upper, known)))}
        detail = {
            404: "there is nothing at this address",
            405: f"{request.method} is not possible here; use {headers.get('Allow', 'GET')}",
        }
        told = detail.get(status, str(error.detail))
        return ProblemError(status, told, headers=headers).response()

    async def of_any(_: Request, error: Exception) -> Response:
        return problem_of(error).response()

    for kind in (ProblemError, ValidationError, ClientDisconnect, UserError, OSError, Exception):
        app.add_exception_handler(kind, of_any)
