"""The OpenAPI document: what addresses take and give, and how they refuse."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from dicgrl.serve.bodies import Body
from dicgrl.serve.problems import MEDIA_TYPE, ProblemError

_OF_READING = {
    422: "Something does not fit; `field` says what.",
    503: "The run cannot be asked at the moment, or it took too long.",
}
_OF_BODIES = {400: "The body is not JSON.", 413: "The body is too large."}
_OF_WRITING = {
    401: "The token is missing or wrong.",
    403: "This server was started without a token: nobody can write.",
    507: "The disk is full; none of the facts were kept.",
}
_PROBLEM = {
    "description": "What is wrong (RFC 9457).",
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "One sentence that says what to do."},
        "field": {"type": "string", "description": "The field at fault, if there is one."},
    },
}


def asks(kind: type[Body], answer: dict[str, Any], *, writes: bool = False) -> dict[str, Any]:
    """What an endpoint takes and gives.

    Args:
        kind: The body.
        answer: An example of what it gives.
        writes: Whether it needs the token.
    """
    told: dict[str, Any] = {
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": kind.model_json_schema()}},
        },
        "responses": gives(answer, _OF_BODIES | (_OF_WRITING if writes else {})),
    }
    return told | ({"security": [{"token": []}]} if writes else {})


def gives(answer: Any, more: dict[int, str] | None = None) -> dict[str, Any]:
    """The answers of an endpoint.

    Args:
        answer: An example.
        more: Further refusals, by status.
    """
    good = {"description": "The answer.", "content": {"application/json": {"example": answer}}}
    refusals = sorted((_OF_READING | (more or {})).items())
    return {"200": good, **{str(status): _refusal(status, why) for status, why in refusals}}


def _refusal(status: int, why: str) -> dict[str, Any]:
    example = ProblemError(status, why, "k" if status == 422 else "").content()
    schema = {"$ref": "#/components/schemas/Problem"}
    return {"description": why, "content": {MEDIA_TYPE: {"schema": schema, "example": example}}}


def complete_document(app: FastAPI) -> None:
    """Add to an application's document what all addresses share."""
    document: dict[str, Any] = app.openapi()
    components = document.setdefault("components", {})
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    components["schemas"] = {"Problem": _PROBLEM}  # and not how FastAPI would refuse
    for methods in document["paths"].values():
        for about in methods.values():
            about["responses"].get("422", {}).get("content", {}).pop("application/json", None)
