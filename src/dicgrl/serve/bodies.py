"""What requests hold, as schemas with examples; bodies are read by hand, which is quicker."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field

from dicgrl.serve.problems import ProblemError

_MOST_LABEL = 10_000  # signs of a label
_Text = Annotated[str, Field(max_length=_MOST_LABEL)]
_Number = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Label = Annotated[_Text | _Number, Field(description="A label or a readable name.")]
Question = dict[_Text, Label | None]
Triple = Annotated[list[Label], Field(min_length=3, max_length=3)]
Fact = Annotated[list[Label], Field(min_length=2, max_length=3)]
_K = Field(10, ge=1, description="How many, at most.")


class Body(BaseModel):
    """What a request holds."""

    model_config = ConfigDict(extra="forbid", strict=True)


def _example(**content: Any) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": [content]})


class Predict(Body):
    """Questions, each with what is asked for left out."""

    model_config = _example(questions=[{"head": "Alien", "relation": "genre"}], k=3)

    questions: list[Question] = Field(
        description="Two of head, relation and tail each; of a network the node."
    )
    k: int = _K
    new: bool = Field(False, description="Leave out facts that are known.")
    among: _Text | list[Label] | None = Field(
        None,
        description="Answers only among these entities; or seen, heads:RELATION, tails:RELATION.",
    )
    held_out: bool = Field(
        False, description="Say of each answer whether it is a fact held out to measure with."
    )


class Score(Body):
    """Triples to score."""

    model_config = _example(triples=[["Alien", "genre", "horror film"]], probability=True)

    triples: list[Triple]
    probability: bool = Field(False, description="Probabilities, too; these take longer.")


class Similar(Body):
    """An entity, or a node, and how many like it."""

    model_config = _example(label="Alien", k=5)

    label: Label
    k: int = _K
    component: int | None = Field(None, ge=0, description="Compare this component alone, from 0.")


class Explain(Body):
    """A triple that is to be explained."""

    model_config = _example(triple=["Alien", "genre", "horror film"], k=5)

    triple: Triple
    k: int = Field(10, ge=0, description="How many facts of each kind, at most.")


class Evaluate(Body):
    """Triples whose answers are known, to measure with."""

    model_config = _example(triples=[["Alien", "genre", "horror film"]], by_relation=False)

    triples: list[Triple]
    by_relation: bool = False


class Vectors(Body):
    """Labels whose vectors are asked for."""

    model_config = _example(labels=["Alien", "Brazil"])

    labels: list[Label]


class Facts(Body):
    """Facts by their labels, not by readable names: triples, or the two ends of edges."""

    model_config = _example(facts=[["Alien: Romulus", "genre", "horror film"]])

    facts: list[Fact] = Field(min_length=1)


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


def at_most(field: str, count: int, most: int) -> None:
    """Refuse what is more than allowed.

    Raises:
        ProblemError: It is.
    """
    if count > most:
        raise ProblemError(422, f"at most {most:,}, not {count:,}", field)
