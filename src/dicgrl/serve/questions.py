"""The addresses that ask: predict."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request, Response

from dicgrl.serve.bodies import Predict, Question, asks, body_of
from dicgrl.serve.problems import ProblemError
from dicgrl.serve.serving import Serving
from dicgrl.serve.snapshots import Snapshot


def questions(serving: Serving) -> APIRouter:
    """The addresses that ask.

    Args:
        serving: The run that is served.
    """
    router = APIRouter(tags=["ask"])
    options = serving.options

    @router.post("/predict", openapi_extra=asks(Predict))
    async def predict(request: Request) -> Response:
        """The best answers to questions."""
        body = await body_of(request, Predict, options.most_bytes)
        if body.k > options.most_answers:
            raise ProblemError(422, f"at most {options.most_answers:,}", "k")

        def answer(snapshot: Snapshot) -> dict[str, Any]:
            found = [
                snapshot.asking.predict(k=body.k, new=body.new, **texts(each))
                for each in body.questions
            ]
            answers = [[asdict(one) for one in each] for each in found]
            return {"version": snapshot.version, "answers": answers}

        return as_json(await serving.asked(answer))

    return router


def texts(question: Question) -> dict[str, str | None]:
    """The fields of a question as texts."""
    return {field: None if said is None else str(said) for field, said in question.items()}


def as_json(content: Any) -> Response:
    """An answer."""
    return Response(json.dumps(content, separators=(",", ":")), media_type="application/json")
