"""What a learner can be asked; each task answers in its own way."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from dicgrl.ask.candidates import Among
from dicgrl.ask.exports import DEFAULT, Takeout, write_takeout
from dicgrl.ask.exports.format import check_options, chosen_formats
from dicgrl.ask.names import Names
from dicgrl.common.numbers import whole_number
from dicgrl.errors import UnknownLabelError, UserError, shown_value
from dicgrl.graph import Graph, Vocabulary
from dicgrl.graph.arrays import IntArray
from dicgrl.graph.frames import listed, only_column
from dicgrl.graph.labels import as_label
from dicgrl.readers.sources import SourceFile
from dicgrl.trainers import Trainer

Answered = tuple[tuple[str, ...], "list[Prediction]"]


@dataclass(frozen=True, slots=True)
class Prediction:
    """One answer to a question.

    Attributes:
        label: The entity, relation or class.
        name: Its readable name, or the label if it has none.
        score: The model's score; higher means more likely. For a class, its share of all classes.
        known: Whether it gives a training fact.
        held_out: Whether it gives a validation or test fact, which was not learned.
        probability: How often such answers are right (docs/protocol.md); None if this cannot be
            estimated.
    """

    label: str
    name: str
    score: float
    known: bool
    held_out: bool = False
    probability: float | None = None


class Asking(ABC):
    """Answers questions about what a trainer has learned.

    Attributes:
        fields: The fields of a question, such as head, relation and tail.
        how_to_ask: The message for a question with other fields.

    Args:
        trainer: Holds the graph and the model.
        names: Readable names.
    """

    fields: ClassVar[tuple[str, ...]]
    how_to_ask: ClassVar[str]

    def __init__(self, trainer: Trainer, names: Names) -> None:
        self.names = names
        self.device = trainer.device
        #: What `examine` found after the newest part; the learner keeps it.
        self.examined: Callable[[], Mapping[str, Any]] = dict
        #: The first part that `examine` did not look at yet; None for the newest one.
        self.unseen: int | None = None
        #: The first change that it did not look at yet; None for the newest one.
        self.unseen_change: int | None = None
        self._graph: Graph = trainer.graph

    def predict(
        self,
        *given: str | None,
        k: int = 10,
        new: bool = False,
        among: Among | None = None,
        **named: str | None,
    ) -> list[Prediction]:
        """Answer a question, best first.

        Args:
            *given: The question, field by field.
            k: How many answers, at most.
            new: Leave out facts that are known, learned or held out.
            among: What answers are taken from, see `among`; everything unless given.
            **named: The question by the names of its fields.

        Raises:
            UserError: It is no question of this task, or names something unknown.
        """
        if among is not None:
            return self.among(among).predict(*given, k=k, new=new, **named)
        k = whole_number("k", k, 1)
        return self.answer(list(self.question(given, named).values()), k, new)

    def question(
        self, given: Sequence[str | None], named: Mapping[str, str | None]
    ) -> dict[str, str | None]:
        """A question by its fields, with None for what is left out.

        Args:
            given: Its first fields, in order.
            named: Others by name.

        Raises:
            UserError: It has other fields than this task's questions, or one of them twice.
        """
        told = {name: text for name, text in named.items() if text is not None}
        if len(given) > len(self.fields) or not told.keys() <= set(self.fields):
            raise UserError(self.how_to_ask)
        question = dict.fromkeys(self.fields) | dict(zip(self.fields, given, strict=False))
        for name, text in told.items():
            if question[name] is not None:
                both = f"{shown_value(question[name])} and {shown_value(text)}"
                raise UserError(f"{name} is given twice: {both}")
        return question | told

    def among(self, candidates: Among) -> Asking:
        """The same, with answers only among some candidates.

        Args:
            candidates: Labels or names; or where entities were seen: `seen`, at the asked end of
                the asked relation, `heads:RELATION` or `tails:RELATION`, at that end of another.

        Raises:
            UserError: They are unknown, or there are none; or the task knows no candidates.
        """
        del candidates
        raise UserError("among is about entities of a knowledge graph")

    @abstractmethod
    def answer(self, question: list[str | None], k: int, new: bool) -> list[Prediction]:
        """Answer one question, given as a text or None for each field."""

    @abstractmethod
    def answer_lines(
        self, file: SourceFile, k: int, new: bool, on_unknown: Callable[[], None] | None
    ) -> Iterator[Answered]:
        """Questions of a file with their answers; for the arguments see `ask.lines.answered`."""

    def answer_given(
        self, questions: Any, k: int, new: bool, on_unknown: Callable[[], None] | None
    ) -> Iterator[Answered]:
        """The same of questions in a list, or a data frame."""
        for question in only_column(questions, self.fields[0]):
            alone = isinstance(question, str | int)
            texts = (question,) if alone else tuple(listed(question, "nodes"))
            try:
                yield texts, self.answer(list(texts), k, new)
            except UnknownLabelError:
                if on_unknown is None:
                    raise
                on_unknown()

    def examine(self) -> dict[str, Any]:
        """Look at what was learned, on held-out examples; empty where the task has no such look.

        Returns:
            What `dicgrl.ask.trust` reads: `basis` and `facts`, on what and on how many examples;
            `fit`, what makes probabilities of scores; `found`, how much is answered.
        """
        return {}

    def foresee(self) -> dict[str, Any]:
        """The same of what has just arrived, before it is learned; empty where nothing is needed.

        It is asked where no example is held out.
        """
        return {}

    def measure_reliability(self) -> dict[str, Any]:
        """How reliable probabilities are on test examples; empty without any."""
        return {}

    @abstractmethod
    def vectors(self) -> tuple[Vocabulary, Tensor]:
        """Labels, and their vectors by component, [N, K, size]; K is 1 for plain ones."""

    @abstractmethod
    def arrays(self) -> tuple[dict[str, Tensor], dict[str, Vocabulary]]:
        """All arrays for other programs, and the labels of those that have any."""

    def describe(self, question: dict[str, str | None]) -> str:
        """A question for people to read.

        Args:
            question: Its fields by name, None for what is asked for.
        """
        texts = [question.get(field) for field in self.fields]
        return " -- ".join("?" if text is None else text for text in texts)

    def note(self, question: dict[str, str | None]) -> str:
        """What to know about the answers to a question; often nothing."""
        del question
        return ""

    @property
    def has_new_answers(self) -> bool:
        """Whether an answer that is not known may be a new fact."""
        return True

    @torch.no_grad()
    def similar(self, label: str, *, k: int = 10, component: int | None = None) -> list[Prediction]:
        """What has a vector that points in the same direction, best first.

        The score is the cosine of the angle between two vectors, 1 for the same direction.

        Args:
            label: The entity or node; its label or readable name.
            k: How many, at most.
            component: Compare that component alone, from 0; whole vectors unless given.

        Raises:
            UserError: There is no such entity or component.
        """
        k = whole_number("k", k, 1)
        vocabulary, vectors = self.vectors()
        if component and vectors.shape[1] == 1:
            raise UserError(f"component={component}: these vectors are not divided into components")
        if component is not None:
            component = whole_number("component", component, 0, vectors.shape[1] - 1)
            vectors = vectors[:, component]
        number = self.names.find(as_label(label), vocabulary)
        directions = torch.nn.functional.normalize(vectors.flatten(1), dim=1)
        cosine = directions @ directions[number]
        gone = self._graph.retired(self._graph.part_type.vocabularies[0])
        others = torch.ones(len(cosine), dtype=torch.bool, device=cosine.device)
        others[torch.from_numpy(gone).to(others.device)] = False
        others[number] = False  # everything is like itself
        cosine[~others] = -torch.inf
        best = cosine.topk(min(k, int(others.sum())))
        labels = vocabulary.labels(best.indices.cpu().numpy())
        return [
            Prediction(label, self.names.of(label), score, known=False)
            for label, score in zip(labels, best.values.tolist(), strict=True)
        ]

    def takeout(self, ids: Mapping[str, IntArray] | None = None, **others: Any) -> Takeout:
        """The vectors for other programs.

        Args:
            ids: The rows of arrays that have labels; all unless given.
            **others: Other attributes of a `Takeout`.
        """
        if (neighbours := others.get("neighbours")) is not None:
            others["neighbours"] = whole_number("neighbours", neighbours, 0)
        return Takeout.of(self._graph, self.names, *self.arrays(), ids, **others)

    def export(
        self,
        folder: str | Path,
        *,
        format: str | Sequence[str] = DEFAULT,  # noqa: A002
        neighbours: int | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> list[str]:
        """Write vectors and labels for other programs to a new folder.

        Args:
            folder: Where to; there must be nothing yet.
            format: Names of formats, a list or text with commas: arrays (safetensors and NumPy),
                safetensors (with a model card), npy, parquet, word2vec.
            neighbours: For parquet, how many neighbours of each row to tell; 0 for none. Unless
                given 10, where there are not too many rows.
            about: What a model card says.

        Returns:
            Names of the files.

        Raises:
            UserError: The folder is there, cannot be made, there is no such format, or none of them
                heeds what is given.
        """
        about = about or {}
        check_options(chosen_formats(format), neighbours, about.get("license", ""))
        takeout = self.takeout(neighbours=neighbours, about=about)
        return write_takeout(takeout, Path(folder), format)

    def for_links(self, what: str) -> Any:
        """This, if it answers questions about triples.

        Raises:
            UserError: It does not.
        """
        raise UserError(f"{what} is about triples; this learner answers other questions")

    def for_nodes(self) -> Any:
        """This, if it answers questions about classes of nodes.

        Raises:
            UserError: It does not.
        """
        raise UserError("this learner does not classify nodes")
