"""The addresses that write: new facts, and facts that are taken back."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request, Response

from dicgrl.ask.links import LinkAsking
from dicgrl.errors import UserError
from dicgrl.graph.change import FORGET, LEARN
from dicgrl.graph.labels import check_labels
from dicgrl.intake import find_facts, take_in
from dicgrl.serve.bodies import Facts, at_most, body_of
from dicgrl.serve.document import asks
from dicgrl.serve.options import TOKEN
from dicgrl.serve.problems import ProblemError
from dicgrl.serve.questions import as_json, naming
from dicgrl.serve.serving import Serving
from dicgrl.serve.snapshots import Snapshot
from dicgrl.store.pending import Entry, Fact

_ADDED = {
    "version": 5,
    "queued": 1,
    "known": 0,
    "held_out": 0,
    "self_loops": 0,
    "named_alike": [],
    "askable": True,
}
_GONE = {"version": 5, "queued": 1, "waiting": 0, "unknown": 0, "askable": True}


def facts(serving: Serving) -> APIRouter:
    """The addresses that write.

    Args:
        serving: The run that is served.
    """
    router = APIRouter(tags=["facts"])
    options = serving.options

    async def given(request: Request) -> list[Fact]:
        """The facts of a request that may write."""
        check_token(request.headers.get("authorization", ""), options.token)
        body = await body_of(request, Facts, options.most_bytes)
        at_most("facts", len(body.facts), options.most_facts)
        return labels_of(body.facts)

    @router.post("/facts", name="add_facts", openapi_extra=asks(Facts, _ADDED, writes=True))
    async def add(request: Request) -> Response:
        """Facts that are to be learned: durable, and asked about, when this answers."""
        return as_json(await add_facts(serving, await given(request)))

    @router.delete("/facts", name="forget_facts", openapi_extra=asks(Facts, _GONE, writes=True))
    async def forget(request: Request) -> Response:
        """Facts that are taken back, learned or only waiting."""
        return as_json(await forget_facts(serving, await given(request)))

    return router


def check_token(header: str, token: str) -> None:
    """Refuse whoever may not write.

    Raises:
        ProblemError: There is no token here, or another one.
    """
    if not token:
        raise ProblemError(403, f"start the server with a token in {TOKEN} to allow writing")
    kind, _, told = header.partition(" ")
    sent = told.encode("latin-1").strip()  # the bytes of the header
    right = hmac.compare_digest(sent, token.encode())
    if kind.lower() != "bearer" or not right:
        raise ProblemError(
            401,
            "send the token of this server: Authorization: Bearer TOKEN",
            headers={"WWW-Authenticate": "Bearer"},
        )


async def add_facts(serving: Serving, given: list[Fact]) -> dict[str, Any]:
    """Let facts wait to be learned; says what is new in them, each fact counted once.

    Raises:
        ProblemError: They cannot be learned, or too many wait already.
        OSError: They could not be written.
    """

    def looked_at(snapshot: Snapshot) -> dict[str, Any]:
        if len(snapshot.pending) + len(given) > serving.options.most_pending:
            raise ProblemError(
                503, "too many facts wait to be learned", headers={"Retry-After": "10"}
            )
        task, graph = snapshot.learner.task, snapshot.trainer.graph
        _check_widths(snapshot, given)
        _, going = snapshot.waiting
        asked = {snapshot.key_of(fact): fact for fact in given}
        stay = [fact for key, fact in asked.items() if key not in going]
        try:
            found = of_stay = take_in(task, graph, snapshot.asking.names, list(asked.values()))
            if stay and len(stay) < len(asked):
                of_stay = take_in(task, graph, snapshot.asking.names, stay)
        except UserError as error:
            raise ProblemError(422, str(error), "facts") from None
        known, held_out = (of_stay.known, of_stay.held_out) if stay else (0, 0)
        nothing = found.is_empty and not snapshot.trainer.would_note(found.given_part)
        return {
            "version": snapshot.version,
            "queued": found.given - known - held_out - found.self_loops,
            "known": known,
            "held_out": held_out,
            "self_loops": found.self_loops,
            "named_alike": list(found.named_alike[:10]),
            "nothing": nothing and len(stay) == len(asked),
        }

    # Whether something waits that was not looked at yet is asked first: then it is not missed.
    behind = serving.is_behind()
    told = await serving.asked(looked_at)
    if told["nothing"] and behind:  # what was not looked at yet may take these facts back
        behind = not await serving.caught_up()
        told = await serving.asked(looked_at)
    askable = True
    if not told.pop("nothing") or behind:
        askable = await serving.arrived(Entry(LEARN, given))
    return told | {"askable": askable}


async def forget_facts(serving: Serving, given: list[Fact]) -> dict[str, Any]:
    """Let facts wait to be forgotten; says how many are known.

    Raises:
        ProblemError: They are no facts of this run.
        OSError: They could not be written.
    """

    def looked_at(snapshot: Snapshot) -> dict[str, Any]:
        _check_widths(snapshot, given)
        waiting, going = snapshot.waiting
        asked = {snapshot.key_of(fact): fact for fact in given}
        rest = [fact for key, fact in asked.items() if key not in waiting and key not in going]
        only, known = len(asked.keys() & waiting), 0
        try:
            if rest:
                known = find_facts(snapshot.learner.task, snapshot.trainer.graph, rest).known
        except UserError as error:
            if "nothing to forget" not in str(error):
                raise ProblemError(422, str(error), "facts") from None
        queued = only + known
        return {
            "version": snapshot.version,
            "queued": queued,
            "waiting": only,
            "unknown": len(asked) - queued,
        }

    behind = serving.is_behind()
    told = await serving.asked(looked_at)
    askable = True
    if told["queued"] or behind:
        askable = await serving.arrived(Entry(FORGET, given))
    return told | {"askable": askable}


def _check_widths(snapshot: Snapshot, given: list[Fact]) -> None:
    """Refuse facts that have too many labels, or too few.

    Raises:
        ProblemError: One has; the field says which.
    """
    named = ("head", "relation", "tail") if _is_of_links(snapshot) else ("source", "target")
    for at, fact in enumerate(given):
        if len(fact) != len(named):
            told = f"expected {len(named)} labels: {', '.join(named)}; not {len(fact)}"
            raise ProblemError(422, told, f"facts[{at}]")


def _is_of_links(snapshot: Snapshot) -> bool:
    return isinstance(snapshot.asking, LinkAsking)


def labels_of(given: Sequence[Sequence[str | int]]) -> list[Fact]:
    """Facts as labels.

    Raises:
        ProblemError: Something in them cannot be one; the field says what.
    """
    return [_labels(fact, f"facts[{at}]") for at, fact in enumerate(given)]


def _labels(fact: Sequence[str | int], place: str) -> Fact:
    """The labels of a fact.

    Raises:
        ProblemError: One of them cannot be a label; the field says which.
    """
    texts = tuple(map(str, fact))
    for at, text in enumerate(texts):
        with naming(f"{place}[{at}]"):
            check_labels([text])
            if not text.strip():
                raise ProblemError(422, "a label cannot be empty", f"{place}[{at}]")
    return texts
