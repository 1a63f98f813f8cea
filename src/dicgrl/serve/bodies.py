"""What requests hold, as schemas with examples; bodies are read by hand, which is quicker."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field

from dicgrl.serve.problems import ProblemError

Label = Annotated[str | int, Field(description="A label or a readable name.")]
Question = dict[str, Label | None]
Triple = Annotated[list[Label], Field(min_length=3, max_length=3)]


class Body(BaseModel):
    """What a request holds."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Predict(Body):
    """Questions, each with what is asked for left out."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"questions": [{"head": "Alien", "relation": "genre"}], "k": 3}]
        }
    )

    questions: list[Question] = Field(
        description="Two of head, relation and tail each; of a network the node."
    )
    k: int = Field(10, ge=1, description="How many answers to each, at most.")
    new: bool = Field(False, description="Leave out facts that are known.")
    among: str | list[Label] | None = Field(
        None,
        description="Answers only among these entities; or seen, heads:RELATION, tails:RELATION.",
    )


_Body = TypeVar("_Body", bound=Body)


async def body_of(request: Request, kind: type[_Body], most_bytes: int) -> _Body:
    """The body of a request.

    Raises:
        ProblemError: It is too large.
        ValidationError: It does not fit.
    """
    return kind.model_validate_json(await bytes_of(request, most_bytes))


async def bytes_of(request: Request, most: int) -> bytes:
    """The bytes of a request's body, no more than allowed.

    Raises:
        ProblemError: There are more.
    """
    told = request.headers.get("content-length", "")
    if told.isdigit() and int(told) > most:
        raise too_large(most)
    found = bytearray()
    async for piece in request.stream():
        found += piece
        if len(found) > most:
            raise too_large(most)
    return bytes(found)


def too_large(most: int) -> ProblemError:
    """The refusal of a body that is too large."""
    return ProblemError(413, f"a body may have {most:,} bytes; send it in pieces")


def asks(kind: type[Body]) -> dict[str, Any]:
    """What an endpoint takes, for the OpenAPI document."""
    schema = kind.model_json_schema(ref_template="#/components/schemas/{model}")
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}
