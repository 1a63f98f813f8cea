"""Questions with labels in, answers as JSON out: for several requests at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import Any

import numpy as np

from dicgrl.ask.asking import Asking, Prediction
from dicgrl.ask.links import LinkAsking
from dicgrl.errors import UserError, shown
from dicgrl.graph.arrays import IntArray
from dicgrl.serve.problems import ProblemError, problem_of
from dicgrl.serve.snapshots import Snapshot

_TRUTH = {True: "true", False: "false"}


@dataclass(frozen=True, slots=True)
class Asked:
    """Questions of one request.

    Attributes:
        questions: Each by its fields.
        k: How many answers to each.
        new: Leave out facts that are known.
        among: Entities that answers are taken from, as `Asking.among` takes them; all for None.
        held_out: Say of each answer whether it is a fact held out to measure with.
    """

    questions: Sequence[Mapping[str, str | int | None]]
    k: int
    new: bool
    among: str | tuple[str, ...] | None
    held_out: bool = False


def answered(snapshot: Snapshot, requests: Sequence[Asked]) -> list[bytes | Exception]:
    """The answers to requests, each as the body of a response, or what is wrong with it."""
    found: list[bytes | Exception] = [ProblemError(500, "")] * len(requests)
    groups: dict[tuple[bool, object], list[int]] = {}
    for number, asked in enumerate(requests):
        groups.setdefault((asked.new, asked.among), []).append(number)
    for numbers in groups.values():
        group = [requests[number] for number in numbers]
        for number, answer in zip(numbers, _answered_alike(snapshot, group), strict=True):
            found[number] = answer
    return found


def _answered_alike(snapshot: Snapshot, requests: Sequence[Asked]) -> list[bytes | Exception]:
    """The same of requests that leave out the same, and choose among the same."""
    try:
        asking = _among(snapshot, requests[0].among)
    except UserError as error:
        return [problem_of(error, "among")] * len(requests)
    if not isinstance(asking, LinkAsking):
        return [_one_by_one(snapshot, asking, asked) for asked in requests]
    found: list[bytes | Exception] = []
    rows: list[list[int]] = []
    counts = []
    for asked in requests:
        try:
            own = [_ids(asking, each, at) for at, each in enumerate(asked.questions)]
        except (UserError, ProblemError) as error:
            found.append(problem_of(error))
            continue
        found.append(b"")
        counts.append((len(found) - 1, len(rows), len(own)))
        rows += own
    if not rows:
        return [one or _body(snapshot, [], False) for one in found]
    most = max(asked.k for asked in requests)  # fewer are the first of more
    questions: IntArray = np.array(rows, dtype=np.int64)
    every = asking.answer_rows(questions, k=most, new=requests[0].new)
    for place, first, count in counts:
        mine = every[first : first + count]
        asked = requests[place]
        found[place] = _body(snapshot, [each[: asked.k] for each in mine], asked.held_out)
    return found


def _one_by_one(snapshot: Snapshot, asking: Asking, asked: Asked) -> bytes | Exception:
    """The answers of a task that has other questions."""
    answers = []
    for at, question in enumerate(asked.questions):
        try:
            texts = fields_of(asking, question, f"questions[{at}]")
            answers.append(asking.answer(texts, asked.k, asked.new))
        except (UserError, ProblemError) as error:
            return problem_of(error, f"questions[{at}]")
    return _body(snapshot, answers, asked.held_out)


def _among(snapshot: Snapshot, among: str | tuple[str, ...] | None) -> Asking:
    return snapshot.asking if among is None else snapshot.asking.among(among)


def fields_of(
    asking: Asking, question: Mapping[str, str | int | None], place: str
) -> list[str | None]:
    """The fields of a question in their order, None for what is asked for.

    Raises:
        ProblemError: It has others.
    """
    for field in question:
        if field not in asking.fields:
            expected = ", ".join(asking.fields)
            raise ProblemError(422, f"no field {shown(field, 40)}; expected {expected}", place)
    given = [question.get(field) for field in asking.fields]
    return [None if one is None else str(one) for one in given]


def _ids(asking: LinkAsking, question: Mapping[str, str | int | None], at: int) -> list[int]:
    """The ids of a question.

    Raises:
        ProblemError: Something in it is unknown, or it does not ask for one thing.
    """
    texts = fields_of(asking, question, f"questions[{at}]")
    if sum(text is None for text in texts) != 1:
        raise ProblemError(
            422, "leave out exactly one of head, relation and tail", f"questions[{at}]"
        )
    try:
        return asking.question_ids(texts)
    except UserError as error:
        raise problem_of(error, f"questions[{at}]{_unknown_field(asking, texts)}") from None


def _unknown_field(asking: LinkAsking, texts: Sequence[str | None]) -> str:
    """Which field of a question names something unknown or ambiguous."""
    graph = asking.graph
    columns = (graph.entities, graph.relations, graph.entities)
    for name, text, vocabulary in zip(asking.fields, texts, columns, strict=True):
        try:
            if text is not None:
                asking.names.find(text, vocabulary)
        except UserError:
            return f".{name}"
    return ""


def _body(snapshot: Snapshot, answers: Sequence[Sequence[Prediction]], held_out: bool) -> bytes:
    texts = (f"[{','.join(answer_text(one, held_out) for one in each)}]" for each in answers)
    return f'{{"version":{snapshot.version},"answers":[{",".join(texts)}]}}'.encode()


def answer_text(answer: Prediction, held_out: bool = False) -> str:
    """An answer as JSON.

    Args:
        answer: The answer.
        held_out: Say whether it is held out, too.

    Example:
        >>> answer_text(Prediction("Q1", "Alien", 0.5, known=False))[:38]
        '{"label":"Q1","name":"Alien","score":0'
    """
    label = encode_basestring(answer.label)
    name = label if answer.name == answer.label else encode_basestring(answer.name)
    told = "null" if answer.probability is None else repr(answer.probability)
    more = f',"held_out":{_TRUTH[answer.held_out]}' if held_out else ""
    return (
        f'{{"label":{label},"name":{name},"score":{answer.score!r},"probability":{told},'
        f'"known":{_TRUTH[answer.known]}{more}}}'
    )


def answer_told(answer: Prediction, held_out: bool = False) -> dict[str, Any]:
    """The same as values.

    Example:
        >>> import json
        >>> one = Prediction("Q1", "Alien", 0.5, known=False)
        >>> answer_told(one) == json.loads(answer_text(one))
        True
    """
    names = ("label", "name", "score", "probability", "known", *(["held_out"] if held_out else []))
    return {name: getattr(answer, name) for name in names}


def similar_told(answer: Prediction) -> dict[str, Any]:
    """What is similar: the score is a cosine, and nothing is likely or known about it."""
    return {"label": answer.label, "name": answer.name, "score": answer.score}
