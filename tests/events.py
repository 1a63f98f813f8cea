"""A third task in a file of its own: temporal links (head, relation, tail, time).

`dicgrl --plugin tests/events.py run facts.events --strategy emr` learns it. Nothing in the package
names it: the part, the graph, the layout, the model, the trainer, the questions and the task are
all here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from typing_extensions import override

from dicgrl.ask.asking import Answered, Asking, Prediction
from dicgrl.ask.names import Names
from dicgrl.common.memory import Need
from dicgrl.common.options import Section, Sections, option
from dicgrl.errors import UserError
from dicgrl.graph import SPLITS, Graph, Part, Stream, Vocabulary
from dicgrl.graph.arrays import IntArray
from dicgrl.graph.holdout import HoldOut
from dicgrl.models.table import Table
from dicgrl.readers import Layout, register_layout
from dicgrl.readers.layouts import Source
from dicgrl.readers.sources import SourceFile
from dicgrl.readers.text import read_rows
from dicgrl.tasks import Task
from dicgrl.trainers import Trainer
from dicgrl.training import Schedule
from dicgrl.training.stepper import Objective

KINDS = ("entities", "relations", "times")
COLUMNS = ("entities", "relations", "entities", "times")
TAIL = 2


@dataclass(frozen=True, slots=True, eq=False)
class EventPart(Part):
    vocabularies: ClassVar[tuple[str, ...]] = KINDS

    index: int
    entities: Vocabulary
    relations: Vocabulary
    times: Vocabulary
    new_entities: range
    new_relations: range
    new_times: range
    train: IntArray  # [n, 4]
    valid: IntArray
    test: IntArray

    @override
    def checked(self) -> Self:
        if self.train.shape[1:] != (4,):
            raise UserError(f"events must have shape [n, 4], not {list(self.train.shape)}")
        return self


class EventGraph(Graph[EventPart]):
    part_type: ClassVar[type[EventPart]] = EventPart

    def __init__(self) -> None:
        self.entities, self.relations, self.times = (Vocabulary(kind=kind) for kind in KINDS)
        self.parts: list[EventPart] = []

    @classmethod
    @override
    def for_part(cls, part: EventPart) -> Self:
        return cls()

    @override
    def add(self, part: EventPart) -> EventPart:
        known = {kind: len(getattr(self, kind)) for kind in KINDS}
        maps = {
            kind: getattr(self, kind).adopt(
                getattr(part, kind), np.arange(getattr(part, f"new_{kind}").stop)
            )
            for kind in KINDS
        }
        arrays = {}
        for split in SPLITS:
            rows = getattr(part, split)
            columns = [maps[kind](rows[:, at]) for at, kind in enumerate(COLUMNS)]
            arrays[split] = np.stack(columns, axis=1)
        ranges = {kind: range(known[kind], len(getattr(self, kind))) for kind in KINDS}
        taken = EventPart.from_arrays(self.num_parts, self.vocabularies(), ranges, arrays)
        self.parts.append(taken)
        return taken

    @property
    @override
    def num_parts(self) -> int:
        return len(self.parts)

    @override
    def knows_all_of(self, part: EventPart) -> bool:
        return not part.facts


class EventStream(Stream[EventPart]):
    task: ClassVar[str] = "temporal-links"

    @override
    def describe(self) -> dict[str, Any]:
        counts = [part.arrived() | {"train": len(part.train)} for part in self]
        return {"name": self.name, "task": self.task, "parts": counts}

    @override
    def merged(self) -> Self:
        return self

    @override
    def split(
        self,
        by: str,
        ratios: Sequence[float] | None = None,
        *,
        parts: int | None = None,
        first: float | None = None,
        times: npt.ArrayLike | None = None,
        valid: float = 0.0,
        test: float = 0.0,
        seed: int = 0,
    ) -> Self:
        raise UserError("events are not split")


class Events(Layout):
    name = "events"
    data = "events (head TAB relation TAB tail TAB time)"
    files = "one file .events, a part for each time"

    @override
    def reads(self, source: Source, graph: Graph | None = None) -> bool:
        return isinstance(source, SourceFile) and source.ending == ".events"

    @override
    def read(
        self, source: Source, name: str, hold_out: HoldOut, graph: Graph | None = None
    ) -> EventStream:
        assert isinstance(source, SourceFile)
        labels = {kind: Vocabulary(kind=kind) for kind in KINDS}
        (block,) = read_rows(source, 4)
        every = list(zip(*block.columns, strict=True))
        parts = []
        for number, time in enumerate(sorted(set(block.columns[3]))):
            known = {kind: len(labels[kind]) for kind in KINDS}
            lines = [line for line in every if line[3] == time]
            columns = [
                labels[kind].add([line[at] for line in lines]) for at, kind in enumerate(COLUMNS)
            ]
            rows = np.stack(columns, axis=1)
            arrays = {"train": rows, "valid": rows[:0], "test": rows[::3]}
            ranges = {kind: range(known[kind], len(labels[kind])) for kind in KINDS}
            parts.append(EventPart.from_arrays(number, labels, ranges, arrays))
        return EventStream(name, tuple(parts))


class TimedModel(nn.Module):
    """f = -|h + r + time - t|."""

    def __init__(self, name: str, dim: int, device: torch.device | str = "cpu") -> None:
        super().__init__()
        self.name, self.dim, self.device = name, dim, torch.device(device)
        self.generator = torch.Generator().manual_seed(0)
        self._tables = {kind: Table(dim, device) for kind in KINDS}

    def configuration(self) -> dict[str, Any]:
        return {"name": self.name, "dim": self.dim}

    def tables(self) -> dict[str, Table]:
        return self._tables

    def grow(self, counts: Mapping[str, int]) -> None:
        for kind, count in counts.items():
            rows = torch.randn(count, self.dim, generator=self.generator)
            self._tables[kind].grow(rows.to(self.device))

    def score(self, events: Tensor) -> Tensor:
        head, relation, tail, time = (
            self._tables[kind].gather(events[..., at]) for at, kind in enumerate(COLUMNS)
        )
        return -(head + relation + time - tail).abs().sum(-1)

    def tail_scores(self, events: Tensor) -> Tensor:
        """[n, entities]."""
        every = torch.arange(len(self._tables["entities"]))
        wide = events[:, None].repeat(1, len(every), 1)
        wide[..., TAIL] = every
        return self.score(wide)


@dataclass(frozen=True)
class TimedSettings(Section):
    """Settings of the timed model."""

    dim: int = option(8, "Length of a vector.", least=1)


class EventTrainer(Trainer):
    metric = "hits@10"
    protocol: ClassVar = {"ranking": "raw, tail side", "selection": "last epoch"}
    model: TimedModel
    graph: EventGraph

    def __init__(self, settings: Sections, seed: int, device: torch.device) -> None:
        super().__init__(settings, seed, device)
        self.graph = EventGraph()
        self.rebuild()

    @override
    def _needs(self, part: Part) -> list[Need]:
        return []

    @override
    def _add(self, part: Part) -> EventPart:
        if not isinstance(part, EventPart):
            raise UserError("timed predicts events; this part is of another kind")
        return self.graph.add(part)

    @override
    def _grow(self) -> None:
        self.model.grow(self.taken[-1].arrived())

    @override
    def rebuild(self) -> None:
        self.model = TimedModel(self.model_name, self.settings.dim, self.device)
        self.model.grow({kind: len(getattr(self.graph, kind)) for kind in KINDS})

    @override
    def count(self, split: str, first: int = 0, last: int | None = None) -> int:
        return len(self.examples(split, first, last))

    @override
    def examples(self, split: str, first: int = 0, last: int | None = None) -> Tensor:
        rows = [getattr(part, split) for part in self.taken[first:last]]
        return torch.from_numpy(np.concatenate([np.empty((0, 4), np.int64), *rows]))

    @override
    def old_examples(self, chosen: IntArray) -> Tensor:
        return self.examples("train")[torch.from_numpy(chosen)]

    @override
    def objective(self, examples: Tensor) -> Objective:
        def of_batch(events: Tensor, weight: Tensor) -> Tensor:
            each = nn.functional.cross_entropy(
                self.model.tail_scores(events), events[:, TAIL], reduction="none"
            )
            return (each * weight).mean()

        return of_batch

    @torch.no_grad()
    @override
    def outcomes(self, sets: Sequence[Tensor]) -> list[tuple[dict[str, float], Tensor]]:
        found = []
        for events in sets:
            scores = self.model.tail_scores(events)
            true = scores.gather(1, events[:, [TAIL]])
            rank = 1 + (scores > true).sum(1)
            answered = rank <= 10
            metrics = {
                "mrr": (1 / rank).mean().item(),
                "hits@1": (rank <= 1).double().mean().item(),
                "hits@3": (rank <= 3).double().mean().item(),
                "hits@10": answered.double().mean().item(),
            }
            found.append((metrics, answered))
        return found

    @override
    def judge(self, examples: Tensor) -> float:
        return self.measure(examples)["mrr"]

    @override
    def chance(self) -> float:
        return 0.0


class EventAsking(Asking):
    fields = ("head", "relation", "time")
    how_to_ask = "ask what happened by head, relation and time"

    def __init__(self, trainer: EventTrainer, names: Names) -> None:
        super().__init__(trainer, names)
        self.trainer = trainer

    @override
    def answer(self, question: list[str | None], k: int, new: bool) -> list[Prediction]:
        graph = self.trainer.graph
        kinds = (graph.entities, graph.relations, graph.times)
        if None in question:
            raise UserError(self.how_to_ask)
        head, relation, time = (
            self.names.find(str(text), kind) for text, kind in zip(question, kinds, strict=True)
        )
        with torch.no_grad():
            scores = self.trainer.model.tail_scores(torch.tensor([[head, relation, 0, time]]))[0]
        best = scores.topk(min(k, len(scores)))
        return [
            Prediction(label, self.names.of(label), score, known=False)
            for label, score in zip(
                graph.entities.labels(best.indices.numpy()), best.values.tolist(), strict=True
            )
        ]

    @override
    def answer_lines(
        self, file: SourceFile, k: int, new: bool, on_unknown: Callable[[], None] | None
    ) -> Iterator[Answered]:
        for rows in read_rows(file, 3):
            for line in zip(*rows.columns, strict=True):
                yield line, self.answer(list(line), k, new)

    @override
    def vectors(self) -> tuple[Vocabulary, Tensor]:
        return self.trainer.graph.entities, self.trainer.model.tables()["entities"].rows[:, None]

    @override
    def arrays(self) -> tuple[dict[str, Tensor], dict[str, Vocabulary]]:
        tables = self.trainer.model.tables()
        return {kind: tables[kind].rows for kind in KINDS}, self.trainer.graph.vocabularies()


class TemporalLinks(Task, name="temporal-links"):
    part_type = EventPart
    default_model = "timed"
    graph_is = "history of events"
    does = "predicts events"
    examples = "events"
    judged_by = "MRR"
    recipe = "events"

    @override
    def models(self) -> Mapping[str, type[Section]]:
        return {"timed": TimedSettings}

    @override
    def sections(self) -> tuple[type[Section], ...]:
        return (Schedule,)

    @override
    def trainer_type(self) -> type[EventTrainer]:
        return EventTrainer

    @override
    def asking(self, trainer: Trainer, names: Names) -> EventAsking:
        assert isinstance(trainer, EventTrainer)
        return EventAsking(trainer, names)

    @override
    def facts(self, given: Any, graph: Graph | None) -> EventPart:
        labels = {kind: Vocabulary(kind=kind) for kind in KINDS}
        columns = [
            labels[kind].add([line[at] for line in given]) for at, kind in enumerate(COLUMNS)
        ]
        rows = np.stack(columns, axis=1)
        arrays = {"train": rows, "valid": rows[:0], "test": rows[:0]}
        ranges = {kind: range(len(labels[kind])) for kind in KINDS}
        return EventPart.from_arrays(0, labels, ranges, arrays)

    @override
    def empty_model(
        self, configuration: dict[str, Any], tensors: Mapping[str, Tensor], device: Any
    ) -> TimedModel:
        return TimedModel(**configuration, device=device)


register_layout(Events)
