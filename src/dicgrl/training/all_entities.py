"""1-vs-all: an answer's cross entropy among all entities (Lacroix et al. 2018).

For both questions of every triple of a batch, with C the entities that are not known answers,

    loss = log(exp f(answer) + sum over c in C of exp f(c)) - f(answer),

which is the softmax loss with all possible negatives. The scores of a block of questions are one
matrix [q, n]. Its gradient is computed at the same time, added to the gradients of queries and
entities, and then dropped. So memory is that of one block, whatever the batch size, plus one
gradient of all entities.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from dicgrl.models.all_entities import Asked, ask_all, entities_between
from dicgrl.models.knowledge import KnowledgeModel
from dicgrl.training.known import HEAD, TAIL, KnownAnswers
from dicgrl.training.losses import Softmax
from dicgrl.training.objective import with_terms

_PAIRS = 24, 28  # powers of two: scores of a block, on a CPU and on a GPU
_PAIR_BYTES = 17  # a score, its gradient, two temporary values, and a mask


class Competitors:
    """The entities of a range that an answer competes with: those that are not known answers.

    Nothing here waits for the device: all questions are padded to the largest number of known
    answers.

    Args:
        known: Triples whose answers do not compete, [n, 3]; the right answer itself never does.
        entities: The range.
        num_relations: Number of relations seen so far.
        retired: Entities that never compete, sorted.
    """

    def __init__(
        self, known: Tensor, entities: range, num_relations: int, retired: Tensor | None = None
    ) -> None:
        self.entities = entities
        tails, heads = (KnownAnswers.of(known, asked, num_relations) for asked in (TAIL, HEAD))
        self._sides = tails, heads
        none = known.new_full((1,), -1)
        self._answers = torch.cat([tails.answers, heads.answers, none])
        counts = [side.start.diff().max() for side in self._sides if len(side.answers)]
        self._most = int(torch.stack(counts).max()) if counts else 0
        self._retired = None
        if retired is not None and len(retired):
            inside = (retired >= entities.start) & (retired < entities.stop)
            self._retired = retired[inside] - entities.start

    def __len__(self) -> int:
        return len(self.entities)

    def known(self, triples: Tensor) -> Tensor:
        """What does not compete in the two questions of triples [b, 3], for `leave_out`, [3, 2 b].

        The rows are: where the known answers of each question begin and end, and its right answer.
        """
        tails, heads = self._sides
        (first, last), (from_, to) = tails.find(triples), heads.find(triples)
        before = len(tails.answers)
        own = torch.cat([triples[:, TAIL], triples[:, HEAD]])
        begin, end = torch.cat([first, from_ + before]), torch.cat([last, to + before])
        return torch.stack([begin, end, own])

    def leave_out(self, scores: Tensor, known: Tensor) -> Tensor:
        """Set scores [q, n] to minus infinity where an entity does not compete.

        Args:
            scores: Scores of all entities of the range.
            known: The columns of these questions in the result of `known`, [3, q].
        """
        first, last, own = known[..., None]
        places = first + torch.arange(self._most, device=scores.device)
        places = torch.where(places < last, places, len(self._answers) - 1)
        answers = torch.cat([self._answers[places], own], 1) - self.entities.start
        outside = (answers < 0) | (answers >= len(self))
        out = torch.zeros(len(scores), len(self) + 1, dtype=torch.bool, device=scores.device)
        out.scatter_(1, torch.where(outside, len(self), answers), True)
        if self._retired is not None:
            out.index_fill_(1, self._retired, True)
        return scores.masked_fill(out[:, :-1], -torch.inf)


class AllEntitiesObjective:
    """The loss of a batch of triples among all entities.

    Args:
        competitors: The entities.
        beta: Weight of the normalisation loss; only used by disentangled models.
        tf32: Whether a GPU may multiply in TF32.
    """

    def __init__(self, competitors: Competitors, beta: float = 0.1, *, tf32: bool = False) -> None:
        self.competitors = competitors
        self.beta = beta
        self.tf32 = tf32

    def __call__(
        self,
        model: KnowledgeModel,
        triples: Tensor,
        weight: Tensor,
        thresholds: Tensor | None = None,
    ) -> Tensor:
        """Loss of triples [b, 3] with weights [b].

        Args:
            model: The model.
            triples: The triples.
            weight: Their weights.
            thresholds: Scores that other heads and other tails should stay below, [b, 2]; those of
                the answers unless given.
        """
        triples = triples.long()  # parts have 32 bits, which PyTorch does not index with everywhere
        route = model.route(*triples.unbind(1))
        asked = ask_all(model, triples, route)
        rows = entities_between(model, self.competitors.entities)
        share = torch.cat([weight, weight]) / (2 * weight.sum().clamp(min=1e-12))
        lead = None
        if thresholds is not None:
            lead = Softmax().level(asked.scores.detach())[:, 0]
            lead = lead - torch.cat([thresholds[:, 1], thresholds[:, 0]])
        known = self.competitors.known(triples)
        with _rounded(self.tf32 and triples.is_cuda):
            total: Tensor = _CrossEntropy.apply(  # type: ignore[no-untyped-call]
                asked.queries, rows, asked.scores, share, lead, known, self.competitors, asked
            )
        return with_terms(model, total, triples, route, weight, self.beta)


def step_bytes(triples: int, entities: int, length: int, *, on_gpu: bool) -> int:
    """Upper bound of the memory of a step, besides the model.

    Args:
        triples: Number of triples of the step.
        entities: Number of entities.
        length: Length of an entity's whole vector.
        on_gpu: Whether the step runs on a GPU, where blocks are larger.
    """
    pairs = min(2 * triples, _height(entities, on_gpu=on_gpu)) * entities
    return _PAIR_BYTES * pairs + 4 * length * (2 * entities + 16 * triples)


class _CrossEntropy(torch.autograd.Function):
    """The weighted sum of all losses; gradients are computed in the forward pass."""

    @staticmethod
    def forward(
        ctx: Any,
        queries: Tensor,
        rows: Tensor,
        own: Tensor,
        share: Tensor,
        lead: Tensor | None,
        known: Tensor,
        competitors: Competitors,
        asked: Asked,
    ) -> Tensor:
        likeness = asked.likeness
        learns = any(ctx.needs_input_grad[:3])
        losses = torch.empty_like(own)
        d_queries, d_rows, d_own = torch.empty_like(queries), None, torch.empty_like(own)
        for some in _blocks(len(queries), len(rows), on_gpu=queries.is_cuda):
            scores = competitors.leave_out(likeness.matrix(queries[some], rows), known[:, some])
            raised = scores if lead is None else scores + lead[some, None]
            level = torch.logaddexp(raised.logsumexp(1), own[some])
            losses[some] = level - own[some]
            if learns:
                pull = torch.exp(raised - level[:, None]).mul_(share[some, None])
                d_own[some] = -pull.sum(1)
                d_queries[some], d_some = likeness.matrix_slopes(queries[some], rows, scores, pull)
                d_rows = d_some if d_rows is None else d_rows.add_(d_some)
        if learns:
            ctx.save_for_backward(d_queries, d_rows, d_own)
        return (losses * share).sum()

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        gradients = (None if g is None else g * upstream for g in ctx.saved_tensors)
        return (*gradients, None, None, None, None, None)


def _height(entities: int, *, on_gpu: bool) -> int:
    """Number of questions in a block."""
    return max((1 << _PAIRS[on_gpu]) // max(entities, 1), 1)


def _blocks(questions: int, entities: int, *, on_gpu: bool) -> Iterator[slice]:
    height = _height(entities, on_gpu=on_gpu)
    for first in range(0, questions, height):
        yield slice(first, first + height)


@contextmanager
def _rounded(wanted: bool) -> Iterator[None]:
    """Let matrix products round their factors to TF32."""
    if not wanted:
        yield
        return
    products = torch.backends.cuda.matmul
    # The second one is for PyTorch before 2.9.
    new = hasattr(products, "fp32_precision")
    name, rounded = ("fp32_precision", "tf32") if new else ("allow_tf32", True)
    before = getattr(products, name)
    setattr(products, name, rounded)
    try:
        yield
    finally:
        setattr(products, name, before)
