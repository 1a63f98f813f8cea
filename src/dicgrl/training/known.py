"""Known answers by question: the tails of every (head, relation) and the heads of (relation, tail).

Built once from triples by sorting. Look-ups are then exact, for many questions at a time, on the
device of the data, without a loop and without waiting for the device.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

HEAD, RELATION, TAIL = 0, 1, 2
_LARGEST = 1 << 63


@dataclass(frozen=True, slots=True)
class KnownAnswers:
    """Sorted answers of each question, for one side.

    Attributes:
        asked: The column of the answers: `TAIL` or `HEAD`.
        num_relations: Base of the question keys.
        questions: Keys of the questions with an answer, sorted, [g].
        start: Where each question's answers begin, [g + 1].
        answers: Entities, ascending within a question, each once, [m].
    """

    asked: int
    num_relations: int
    questions: Tensor
    start: Tensor
    answers: Tensor

    @classmethod
    def of(cls, triples: Tensor, asked: int, num_relations: int) -> KnownAnswers:
        """Collect the answers that triples [n, 3] give; repeated triples count once.

        Example:
            >>> known = KnownAnswers.of(torch.tensor([[0, 0, 2], [0, 0, 1], [1, 0, 2]]), TAIL, 1)
            >>> known.answers.tolist(), known.start.tolist()
            ([1, 2, 2], [0, 2, 3])
        """
        keys, answers = _keys(triples, asked, num_relations), triples[:, asked]
        # Question and answer as one number: in a usual graph they take 24 + 15 + 24 bits.
        span = int(answers.max()) + 1 if len(answers) else 1
        if len(answers) and (int(keys.max()) + 1) * span > _LARGEST:
            keys, answers = _sorted_apart(keys, answers)
        else:
            pairs = torch.unique_consecutive((keys * span + answers).sort().values)
            keys, answers = pairs // span, pairs % span
        questions, counts = torch.unique_consecutive(keys, return_counts=True)
        start = torch.zeros(len(counts) + 1, dtype=torch.long, device=triples.device)
        torch.cumsum(counts, 0, out=start[1:])
        return cls(asked, num_relations, questions, start, answers)

    def find(self, triples: Tensor) -> tuple[Tensor, Tensor]:
        """The range [first, last) of `answers` for the question of each triple, [n] each."""
        keys = _keys(triples, self.asked, self.num_relations)
        if len(self.questions) == 0:
            return torch.zeros_like(keys), torch.zeros_like(keys)
        at = torch.searchsorted(self.questions, keys).clamp_(max=len(self.questions) - 1)
        hit = self.questions[at] == keys
        first = torch.where(hit, self.start[at], 0)
        return first, torch.where(hit, self.start[at + 1], 0)

    def expand(self, triples: Tensor) -> tuple[Tensor, Tensor]:
        """All known answers: positions in `triples` and entities, one pair per answer."""
        first, last = self.find(triples)
        counts = last - first
        row = torch.repeat_interleave(counts)
        offset = counts.cumsum(0) - counts
        position = torch.arange(len(row), device=row.device) - offset[row] + first[row]
        return row, self.answers[position]


def _sorted_apart(keys: Tensor, answers: Tensor) -> tuple[Tensor, Tensor]:
    """Sort by question, then answer, without repeats, if a pair does not fit into one number."""
    order = answers.argsort()
    keys, answers = keys[order], answers[order]
    order = keys.argsort(stable=True)
    keys, answers = keys[order], answers[order]
    first = torch.ones(len(keys), dtype=torch.bool, device=keys.device)
    first[1:] = (keys[1:] != keys[:-1]) | (answers[1:] != answers[:-1])
    return keys[first], answers[first]


def _keys(triples: Tensor, asked: int, num_relations: int) -> Tensor:
    given = HEAD if asked == TAIL else TAIL
    return triples[:, given] * num_relations + triples[:, RELATION]


def times_asked(triples: Tensor, num_relations: int) -> Tensor:
    """How many triples answer the two questions of each triple, summed over both, [n].

    Like `KnowledgeGraph.times_asked`, if these are all triples of the graph.
    """
    asked = torch.zeros(len(triples), dtype=torch.long, device=triples.device)
    for given in (HEAD, TAIL):
        question = triples[:, given] * num_relations + triples[:, RELATION]
        _, group, counts = torch.unique(question, return_inverse=True, return_counts=True)
        asked += counts[group]
    return asked
