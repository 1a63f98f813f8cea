"""The addresses that ask: predict, score, similar, explain, evaluate, vectors, entities."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import asdict
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query, Request, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from dicgrl.errors import UserError
from dicgrl.serve.answering import Asked, similar_told
from dicgrl.serve.bodies import (
    Evaluate,
    Explain,
    Predict,
    Score,
    Similar,
    Vectors,
    at_most,
    body_of,
)
from dicgrl.serve.document import asks, gives
from dicgrl.serve.problems import ProblemError, problem_of
from dicgrl.serve.search import found_entities
from dicgrl.serve.serving import Serving
from dicgrl.serve.snapshots import Snapshot

_ANSWER = {
    "label": "Q200092",
    "name": "horror film",
    "score": -4.2,
    "probability": 0.83,
    "known": True,
}
_ALIKE = {"label": "Q104814", "name": "Aliens", "score": 0.91}
_log = logging.getLogger("dicgrl.serve")
_PAIRS = 100_000  # answers of a request


def questions(serving: Serving) -> APIRouter:
    """The addresses that ask.

    Args:
        serving: The run that is served.
    """
    router = APIRouter(tags=["ask"])
    options = serving.options
    most = options.most_questions

    async def told(work: Callable[[Snapshot], dict[str, Any]]) -> Response:
        """What a function says of the run as it is now."""
        return as_json(await serving.asked(lambda found: {"version": found.version, **work(found)}))

    @router.post("/predict", openapi_extra=asks(Predict, {"version": 5, "answers": [[_ANSWER]]}))
    async def predict(request: Request) -> Response:
        """The best answers to questions, each with how likely it is and whether it is known."""
        return await predicted(serving, request)

    @router.post("/score", openapi_extra=asks(Score, {"version": 5, "scores": [-4.2]}))
    async def score(request: Request) -> Response:
        """How likely triples are: scores, higher is more, and probabilities as answers."""
        body = await body_of(request, Score, options.most_bytes)
        at_most("triples", len(body.triples), most)

        def work(snapshot: Snapshot) -> dict[str, Any]:
            with naming("triples"):
                asking = snapshot.asking.for_links("score")
                rows = _rows(asking, body.triples)
            found = {"scores": asking.score_rows(rows)}
            if body.probability:
                found["probabilities"] = asking.probability_rows(rows)
            return found

        return await told(work)

    @router.post("/similar", openapi_extra=asks(Similar, {"version": 5, "answers": [_ALIKE]}))
    async def similar(request: Request) -> Response:
        """What has a vector that points in the same direction; the score is the cosine."""
        body = await body_of(request, Similar, options.most_bytes)
        at_most("k", body.k, options.most_answers)

        def work(snapshot: Snapshot) -> dict[str, Any]:
            asking = snapshot.asking
            with naming("label"):
                asking.names.find(str(body.label), _things(snapshot))
            with naming("component"):
                found = asking.similar(str(body.label), k=body.k, component=body.component)
            return {"answers": [similar_told(one) for one in found]}

        return await told(work)

    @router.post("/explain", openapi_extra=asks(Explain, {"version": 5, "score": -4.2}))
    async def explain(request: Request) -> Response:
        """Why a triple is likely: known facts that speak for it, and what it would activate."""
        body = await body_of(request, Explain, options.most_bytes)
        at_most("k", body.k, options.most_answers)

        def work(snapshot: Snapshot) -> dict[str, Any]:
            with naming("triple"):
                asking = snapshot.asking.for_links("explain")
                head, relation, tail = map(str, body.triple)
                return asdict(asking.explain(head, relation, tail, k=body.k))

        return await told(work)

    @router.post("/evaluate", openapi_extra=asks(Evaluate, {"version": 5, "mrr": 0.4, "count": 1}))
    async def evaluate(request: Request) -> Response:
        """How well the answers of triples are found; nothing is learned."""
        body = await body_of(request, Evaluate, options.most_bytes)
        at_most("triples", len(body.triples), most)

        def work(snapshot: Snapshot) -> dict[str, Any]:
            with naming("triples"):
                asking = snapshot.asking.for_links("evaluate")
                rows = _rows(asking, body.triples)
                found: dict[str, Any] = asking.measure_rows(rows, by_relation=body.by_relation)
                return found

        return await told(work)

    @router.get("/vectors", openapi_extra={"responses": gives({"version": 5, "vector": [[0.1]]})})
    async def vector(
        label: Annotated[str, Query(max_length=10_000, examples=["Alien"])],
    ) -> Response:
        """The vector of an entity or node, by component."""
        return await told(
            lambda found: {"label": label, "vector": _vectors(found, [label], "label")[0]}
        )

    @router.post("/vectors", openapi_extra=asks(Vectors, {"version": 5, "vectors": [[[0.1]]]}))
    async def vectors(request: Request) -> Response:
        """The vectors of several entities or nodes, by component."""
        body = await body_of(request, Vectors, options.most_bytes)
        at_most("labels", len(body.labels), most)
        labels = [str(label) for label in body.labels]
        return await told(lambda found: {"vectors": _vectors(found, labels, "labels")})

    found_entity = {"label": "Q103569", "name": "Alien", "match": "name"}

    @router.get("/entities", openapi_extra={"responses": gives({"entities": [found_entity]})})
    async def entities(
        query: Annotated[str, Query(max_length=200, examples=["alie"])] = "",
        limit: Annotated[int, Query(ge=1, le=100)] = 10,
    ) -> Response:
        """Entities or nodes by the beginning of their label or name, then those spelt like it."""
        return await told(lambda found: {"entities": found_entities(found, query, limit)})

    return router


async def predicted(serving: Serving, request: Request) -> Response:
    """The answer to a request for predictions.

    Raises:
        ProblemError: It asks for something that there is not, or for too much.
        ValidationError: Its body does not fit.
    """
    options = serving.options
    body = await body_of(request, Predict, options.most_bytes)
    at_most("k", body.k, options.most_answers)
    at_most("questions", len(body.questions), options.most_questions)
    at_most("questions", len(body.questions) * body.k, _PAIRS)
    among: str | tuple[str, ...] | None = None
    if isinstance(body.among, list):
        at_most("among", len(body.among), options.most_facts)
        among = tuple(map(str, body.among))
    else:
        among = body.among
    asked = Asked(body.questions, body.k, body.new, among, body.held_out)
    return Response(await serving.predicted(asked), media_type="application/json")


class Shortcut:
    """Lets requests for predictions skip what leads to the others: it costs more than an answer.

    Args:
        app: The application.
        serving: The run that is served.
    """

    def __init__(self, app: ASGIApp, serving: Serving) -> None:
        self._app, self._serving = app, serving

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http" or (scope["path"], scope["method"]) != ("/predict", "POST"):
            await self._app(scope, receive, send)
            return
        try:
            response = await predicted(self._serving, Request(scope, receive))
        except Exception as error:
            problem = problem_of(error)
            if problem.status == 500:
                _log.exception("a request failed")
            response = problem.response()
        await response(scope, receive, send)


def _rows(asking: Any, triples: list[list[Any]]) -> Any:
    """Ids of triples; an error names the triple."""
    rows = []
    for at, triple in enumerate(triples):
        with naming(f"triples[{at}]"):
            rows.append(asking.ids([[str(label) for label in triple]])[0])
    return np.stack(rows) if rows else asking.ids([])


def _things(snapshot: Snapshot) -> Any:
    """The vocabulary that vectors are of."""
    return snapshot.asking.vectors()[0]


def _vectors(snapshot: Snapshot, labels: list[str], field: str) -> list[Any]:
    vocabulary, vectors = snapshot.asking.vectors()
    numbers = []
    for at, label in enumerate(labels):
        with naming(field if field == "label" else f"{field}[{at}]"):
            numbers.append(snapshot.asking.names.find(label, vocabulary))
    found: list[Any] = vectors[numbers].tolist()
    return found


@contextmanager
def naming(field: str) -> Any:
    """Let errors name the field that they are about."""
    try:
        yield
    except ProblemError:
        raise
    except UserError as error:
        raise problem_of(error, field) from None


def as_json(content: Any) -> Response:
    """An answer."""
    return Response(json.dumps(content, separators=(",", ":")), media_type="application/json")
