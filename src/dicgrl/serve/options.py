"""How a run is served: where, what is allowed, and how soon facts are learned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TOKEN = "DICGRL_TOKEN"  # the environment variable that allows to write


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """How a run is served.

    Attributes:
        device: Where questions are answered: auto, cpu or cuda.
        token: What whoever writes has to know; nobody can write without one.
        most_bytes: Bytes of a request's body.
        most_questions: Questions, triples or labels of a request.
        most_answers: Answers to a question.
        most_facts: Facts of a request.
        most_pending: Facts that may wait to be learned.
        most_connections: Connections at a time.
        seconds: How long a request may take to arrive, and how long to be answered.
        learn_facts: So many waiting facts are learned at once.
        learn_seconds: A waiting fact is learned after so many seconds, if not before.
        look_seconds: Time between two looks for versions that others commit.
        evaluate: What is measured after facts were learned; see `dicgrl learn`.
        keep: Whose models stay in the folder; see `dicgrl learn`.
        plugins: Files with components of one's own, for the process that learns.
    """

    device: str = "auto"
    token: str = ""
    most_bytes: int = 1 << 20
    most_questions: int = 1000
    most_answers: int = 1000
    most_facts: int = 10_000
    most_pending: int = 100_000
    most_connections: int = 500
    seconds: float = 30.0
    learn_facts: int = 100
    learn_seconds: float = 30.0
    look_seconds: float = 1.0
    evaluate: str = "sample"
    keep: str | None = None
    plugins: Sequence[Path] = ()
