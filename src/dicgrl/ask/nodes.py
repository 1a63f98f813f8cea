"""Questions about a network: what class does a node have?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NoReturn, Self

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from dicgrl.ask.asking import Answered, Asking, Prediction
from dicgrl.ask.class_probabilities import examine_nodes, measure_nodes
from dicgrl.ask.names import Names, known_labels
from dicgrl.common.numbers import whole_number
from dicgrl.errors import UserError
from dicgrl.graph import NetworkGraph, Vocabulary
from dicgrl.graph.labels import as_label
from dicgrl.readers import Reading
from dicgrl.readers.sources import SourceFile
from dicgrl.trainers import NodeTrainer

_LINES = ("", "tsv", "txt", "csv")  # formats of files that may have one field in a line


class NodeAsking(Asking):
    """Answers what classes nodes have."""

    fields = ("node",)
    how_to_ask = "a network answers what class a node has: give node alone"

    def __init__(self, trainer: NodeTrainer, names: Names) -> None:
        super().__init__(trainer, names)
        self.trainer = trainer

    @property
    def graph(self) -> NetworkGraph:
        """The network."""
        assert self.trainer.graph is not None
        return self.trainer.graph

    @override
    def answer(self, question: list[str | None], k: int, new: bool) -> list[Prediction]:
        (node,) = question
        if node is None or new:
            raise UserError(self.how_to_ask)
        return self.predict_classes([node], k=k)[0]

    def predict_classes(self, nodes: Sequence[str], *, k: int = 10) -> list[list[Prediction]]:
        """The classes of many nodes, in one pass over the network."""
        k = whole_number("k", k, 1)
        graph, trainer = self.graph, self.trainer
        found = [self.names.find(as_label(node), graph.nodes) for node in nodes]
        numbers = np.array(found, dtype=np.int64)
        scores = trainer.scores(torch.from_numpy(numbers).to(self.device))
        share = scores.softmax(1)
        best = share.topk(min(k, share.shape[1] - len(graph.retired("classes"))))
        trained = np.isin(numbers, trainer.nodes("train")).tolist()
        true = graph.labels[numbers].tolist()
        classes = graph.classes.labels(range(share.shape[1]))
        told = [[None] * best.indices.shape[1]] * len(numbers)
        if (scale := self._scale) is not None:
            told = (scale * scores).softmax(1).gather(1, best.indices).tolist()
        answers = zip(best.indices.tolist(), best.values.tolist(), told, true, trained, strict=True)
        return [
            [
                Prediction(
                    classes[i],
                    self.names.of(classes[i]),
                    p,
                    known=learned and i == right,
                    held_out=not learned and i == right,
                    probability=probability,
                )
                for i, p, probability in zip(indices, shares, told, strict=True)
            ]
            for indices, shares, told, right, learned in answers
        ]

    @property
    def _scale(self) -> float | None:
        """What class scores are multiplied by; None where no nodes were held out to fit it."""
        fit = self.examined().get("fit")
        return fit["scale"] if fit else None

    @override
    def examine(self) -> dict[str, Any]:
        return examine_nodes(self.trainer)

    @override
    def measure_reliability(self) -> dict[str, Any]:
        return {} if self._scale is None else measure_nodes(self.trainer, self._scale)

    @override
    def note(self, question: dict[str, str | None]) -> str:
        del question
        return (
            "no probabilities: no nodes are held out to tell them from"
            if self._scale is None
            else ""
        )

    @override
    def answer_lines(
        self, file: SourceFile, k: int, new: bool, on_unknown: Callable[[], None] | None
    ) -> Iterator[Answered]:
        if new:
            raise UserError("a node has one class: there is no fact to leave out")
        if replace(file.reading, format="") != Reading() or file.reading.format not in _LINES:
            raise UserError(f"{file.label}: a file of nodes has one in each line, and nothing else")
        nodes = known_labels(file, self.names, self.graph.nodes, on_unknown)
        answers = self.predict_classes(nodes, k=k) if nodes else []
        yield from (((node,), found) for node, found in zip(nodes, answers, strict=True))

    @override
    def describe(self, question: dict[str, str | None]) -> str:
        return f"{question.get('node')} -- class -- ?"

    @property
    @override
    def has_new_answers(self) -> bool:
        return False  # a node has one class

    @override
    def vectors(self) -> tuple[Vocabulary, Tensor]:
        return self.graph.nodes, self.trainer.vectors()[:, None]

    @override
    def arrays(self) -> tuple[dict[str, Tensor], dict[str, Vocabulary]]:
        model = self.trainer.model
        arrays = {"nodes": self.trainer.vectors(), "classes": model.class_weight.detach()}
        if weights := list(model.attention_now().values()):  # a layer each
            arrays["attention_weight"] = torch.stack(weights)
        return arrays, {"nodes": self.graph.nodes, "classes": self.graph.classes}

    @override
    def for_links(self, what: str) -> NoReturn:
        raise UserError(f"{what} is about triples; this learner classifies nodes")

    @override
    def for_nodes(self) -> Self:
        return self
