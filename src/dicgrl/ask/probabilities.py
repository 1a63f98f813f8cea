"""Probabilities of links: fitted on held-out facts, measured on others, added to every answer.

A probability says how often such an answer is right if the question has exactly one answer that is
not known yet (docs/protocol.md). Candidates are all entities except the known answers, as for
`predict` with `new`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from dicgrl.ask.doubts import found_of
from dicgrl.ask.filtered import Block, filtered_scores, known_answers, known_relations
from dicgrl.evaluation.calibration import Asked, Calibration, said_of
from dicgrl.evaluation.reliability import reliability
from dicgrl.evaluation.sample import bounded_sizes, sample_of
from dicgrl.graph.arrays import BoolArray, FloatArray, IntArray
from dicgrl.graph.change import FORGET, REPLACE
from dicgrl.models import KnowledgeModel
from dicgrl.trainers import LinkTrainer
from dicgrl.training.known import HEAD, RELATION, TAIL

TOP = 10  # answers to a question that are looked at
NO_PROBABILITIES = "no probabilities: no facts are held out to tell them from (--valid 0.1)"
_FACTS = 5000  # asked about, at most
_LEAST = 50
_WORK = {"cpu": 1 << 31, "cuda": 1 << 36}  # numbers that are looked at: about a second
_SMALL = 50  # a part that brings less than one in so many facts has less time
_LEAVING = (FORGET, REPLACE)  # changes by which facts leave
_PASSES = 32  # what sorting out the scores of a candidate costs, in numbers of its vector
_PAIRS = 1 << 24  # the same of relations
_NEAR, _FAR = 64, 64  # candidates of a question that are kept: the best, and some of the others


def most_facts(
    trainer: LinkTrainer, since: int | None = None, since_change: int | None = None
) -> int:
    """How many facts there is time to ask about; none after changes too small to be worth it.

    Where less than a fiftieth of what is known arrived or was taken back, there is the less time,
    the less it is.

    Args:
        trainer: Holds the model and the graph.
        since: The first part that was not looked at before; the newest one unless given.
        since_change: The first change that was not looked at before; the newest one unless given.
    """
    model = trainer.model
    each = 2 * model.num_entities * (_numbers(model) + _PASSES)
    new = trainer.count("train", trainer.newest if since is None else since)
    known = max(trainer.count("train"), 1)
    changes = trainer.history[-1 if since_change is None else since_change :]
    gone = sum(len(each.arrays.get("triples", ())) for each in changes if each.kind in _LEAVING)
    share = min(_SMALL * (new + gone) / known, 1.0)
    fitting = int(share * _WORK.get(trainer.device.type, _WORK["cpu"])) // max(each, 1)
    if fitting < _LEAST:
        return _LEAST if share == 1 else 0
    return min(fitting, _FACTS)


def _numbers(model: KnowledgeModel) -> int:
    """How many numbers go into a score."""
    return max(model.active, model.pair_bytes() // 4)


def facts_within(
    trainer: LinkTrainer,
    split: str,
    since: int | None = None,
    since_change: int | None = None,
) -> tuple[IntArray, IntArray]:
    """Facts of a split that there is time to ask about, and the parts that they came with.

    The same ones for as long as there are as many (`evaluation.sample`).
    """
    most = most_facts(trainer, since, since_change)
    if split == "test":  # whoever measures has the time
        most = max(most, _LEAST)
    if not most:
        return np.empty((0, 3), np.int64), np.empty(0, np.int64)
    sizes = [trainer.count(split, part, part + 1) for part in range(trainer.num_parts)]
    taken = bounded_sizes(sizes, most)
    rows = [
        trainer.graph.rows(split, part, part + 1)[sample_of(part, size, count)]
        for part, (size, count) in enumerate(zip(sizes, taken, strict=True))
    ]
    return np.concatenate(rows), np.repeat(np.arange(len(taken)), taken)


def ask_about(trainer: LinkTrainer, facts: IntArray, *, relations: bool = True) -> Asked:
    """What a model says to the questions of facts [n, 3]: all heads, then all tails.

    Args:
        trainer: Holds the model and the graph.
        facts: The facts.
        relations: Ask for relations, too.
    """
    pieces = [_asked_for(trainer, facts, column) for column in (HEAD, TAIL)]
    if relations and trainer.model.num_relations > 1:
        few = max(_PAIRS // (trainer.model.num_relations * _numbers(trainer.model)), 1)
        pieces.append(_asked_for(trainer, facts[:: -(-len(facts) // few)], RELATION))
    return Asked.joined(pieces)


def examine_links(
    trainer: LinkTrainer, since: int | None = None, since_change: int | None = None
) -> dict[str, Any]:
    """Fit probabilities on validation facts, and count what is found; see `Asking.examine`.

    Without any, a sample of training facts shows whether anything was learned; how reliable
    answers to new questions are it does not show, so that nothing is fitted.
    """
    held_out = trainer.count("valid") > 0
    facts, parts = facts_within(trainer, "valid" if held_out else "train", since, since_change)
    return _examined(trainer, facts, parts, "validation" if held_out else "training")


def foresee_links(trainer: LinkTrainer) -> dict[str, Any]:
    """Fit probabilities on facts that have just arrived, as if they were held out.

    They are told by the model before it learns them, so that it is the more modest one. Facts of
    newcomers are left out: where these start, the facts have said.
    """
    part = trainer.part
    if trainer.count("valid") or not trainer.newest or part is None:
        return {}
    facts = part.train
    old = facts[:, RELATION] < part.new_relations.start
    for end in (HEAD, TAIL):
        old &= facts[:, end] < part.new_entities.start
    facts = facts[old][: most_facts(trainer)]
    if len(facts) < _LEAST:
        return {}
    return _examined(trainer, facts, np.full(len(facts), trainer.newest), "arrivals")


def _examined(trainer: LinkTrainer, facts: IntArray, parts: IntArray, basis: str) -> dict[str, Any]:
    if not len(facts):
        return {}
    asked = ask_about(trainer, facts)
    compared = parts if basis == "validation" else None
    found = {"basis": basis, "facts": len(facts), "found": _found(trainer, facts, asked, compared)}
    calibration = None if basis == "training" else fit_links(asked)
    return found | ({"fit": calibration.as_dict()} if calibration else {})


def _found(
    trainer: LinkTrainer, facts: IntArray, asked: Asked, parts: IntArray | None
) -> dict[str, Any]:
    """How many heads and tails are among the ten best, and how much scores tell of them."""
    entities = asked.at((asked.side != RELATION) & (asked.scores[:, 0] > -torch.inf))
    if len(entities) < 2 * len(facts):  # scores that are no numbers
        return {}
    graph = trainer.graph
    uses, _ = graph.evidence(facts[:, RELATION], relations=True)
    counts = [graph.times_answered(facts, side) / np.maximum(uses, 1) for side in ("head", "tail")]
    return found_of(
        log_share=entities.log_shares().numpy(),
        frequency=np.concatenate(counts),
        candidates=entities.candidates.numpy(),
        answered=(entities.rank <= TOP).numpy(),
        chance=(TOP / entities.candidates).clamp(max=1).mean().item(),
        parts=None if parts is None else np.tile(parts, 2),
    )


def fit_links(asked: Asked) -> Calibration | None:
    """Fit what was asked about held-out facts; None where no answer has a score."""
    usable = (asked.scores[:, 0] > -torch.inf) & (asked.candidates > 1)
    if not usable.any():
        return None
    return Calibration.fitted(asked.at(usable))


def measure_links(trainer: LinkTrainer, calibration: Calibration) -> dict[str, Any]:
    """How reliable probabilities are on test facts: of first answers, and of the ten best."""
    facts, _ = facts_within(trainer, "test")
    if not len(facts):
        return {}
    said, right = said_of(ask_about(trainer, facts, relations=False), calibration)
    ten = reliability(said.flatten(), right.flatten())
    return {"facts": len(facts), **reliability(said[:, 0], right[:, 0]), "ten_best": ten}


def fact_probabilities(
    trainer: LinkTrainer, calibration: Calibration, facts: IntArray
) -> FloatArray:
    """The probability of each fact [n, 3] as an answer to (head, relation, ?)."""
    found = np.empty(len(facts), dtype=np.float32)
    for block in filtered_scores(trainer, facts, TAIL):
        at = block.rows.cpu().numpy()
        relations = torch.from_numpy(facts[at, RELATION]).long()
        truth = block.scores.gather(1, block.answers[:, None])
        rank = 1.0 + (block.scores > truth).sum(1, keepdim=True)
        scale = calibration.scale_of(relations, TAIL).to(block.scores)
        mass = (block.scores * scale[:, None]).logsumexp(1, keepdim=True)
        told = calibration.probabilities(
            relations, TAIL, truth.cpu(), rank.double().cpu(), mass.double().cpu()
        )
        found[at] = told[:, 0].numpy()
    return found


class Masses:
    """Computes log sum exp(scale x score) for each question, over candidates that are not known.

    Candidates come in blocks, as `predict` scores them.

    Args:
        trainer: Holds the graph.
        calibration: Knows the scales.
        questions: Triples [q, 3]; the asked column is ignored.
        asked: The column that is asked for.
    """

    def __init__(
        self, trainer: LinkTrainer, calibration: Calibration, questions: IntArray, asked: int
    ) -> None:
        self._trainer, self._calibration, self._asked = trainer, calibration, asked
        self._questions = questions
        relations = np.zeros_like(questions[:, 1]) if asked == RELATION else questions[:, RELATION]
        self._relations = torch.from_numpy(relations).long().clone()
        self._triples = torch.from_numpy(questions).long().to(trainer.device)
        self._known = None if asked == RELATION else known_answers(trainer, questions, asked)
        scale = calibration.scale_of(self._relations, asked)
        self._scale = scale.float().to(trainer.device)
        self._mass = torch.full((len(questions),), -torch.inf, device=trainer.device)

    def add(self, rows: Tensor, scores: Tensor, ids: Tensor) -> None:
        """Take in a block of candidates.

        Args:
            rows: Which questions, [b].
            scores: Of the candidates, [b, c]; -inf for what is no candidate.
            ids: The candidates, rising, [c].
        """
        scaled = scores * self._scale[rows].to(scores.device)[:, None]
        scaled[self._is_known(rows, ids).to(scores.device)] = -torch.inf
        mass = scaled.nan_to_num_(nan=-torch.inf).logsumexp(1).to(self._mass.device)
        self._mass[rows] = torch.logaddexp(self._mass[rows], mass)

    def _is_known(self, rows: Tensor, ids: Tensor) -> Tensor:
        """Which candidates make a known fact, [b, c]."""
        if self._known is None:
            questions = self._questions[rows.cpu().numpy()]
            return torch.from_numpy(known_relations(self._trainer, questions, ids.cpu().numpy()))
        row, entity = self._known.expand(self._triples[rows])
        found = torch.zeros(len(rows), len(ids), dtype=torch.bool, device=rows.device)
        at = torch.searchsorted(ids, entity).clamp_(max=len(ids) - 1)
        here = ids[at] == entity
        found[row[here], at[here]] = True
        return found

    def probabilities(self, scores: FloatArray, known: BoolArray) -> FloatArray:
        """How likely the best answers to each question are, [q, k].

        A known one has the probability that it would have if it were not known.

        Args:
            scores: Their scores, falling, [q, k].
            known: Which of them are known facts.
        """
        unknown = torch.from_numpy(~known)
        said = torch.from_numpy(scores).double()
        rank = 1.0 + unknown.cumsum(1) - unknown.long()
        scale = self._scale.double().cpu()[:, None]
        mass = self._mass.double().cpu()[:, None].expand_as(said)
        mass = torch.where(unknown, mass, torch.logaddexp(mass, scale * said))
        found = self._calibration.probabilities(
            self._relations, self._asked, said, rank.double(), mass
        )
        return found.numpy()


def _asked_for(trainer: LinkTrainer, facts: IntArray, asked: int) -> Asked:
    blocks = list(filtered_scores(trainer, facts, asked))
    order = torch.cat([block.rows for block in blocks]).argsort().cpu()
    relations = torch.from_numpy(np.array(facts[:, RELATION], np.int64))
    if asked == RELATION:
        relations = torch.zeros_like(relations)
    kept = [_kept(block) for block in blocks]
    columns = [torch.cat(each)[order] for each in zip(*kept, strict=True)]
    return Asked(relations, torch.full_like(relations, asked), *columns)


def _kept(block: Block) -> tuple[Tensor, ...]:
    """The columns of `Asked`: of all candidates the best, and some that stand for the rest."""
    scores, answers = block.scores, block.answers[:, None]
    truth = scores.gather(1, answers)
    candidates = (scores > -torch.inf).sum(1, keepdim=True)
    above = (scores > truth).sum(1)
    same = ((scores == truth).sum(1) - 1) * (truth[:, 0] > -torch.inf)
    found = scores.topk(min(_NEAR, scores.shape[1]))
    near = _padded(found.values, _NEAR)
    is_truth = _padded(found.indices, _NEAR, -1) == answers
    # What is not among the best is looked at in even steps, and stands for what lies between.
    step = -(-scores.shape[1] // _FAR)
    far = _padded(scores[:, ::step], _FAR)
    place = step * torch.arange(_FAR, device=far.device)
    far = far.masked_fill((far >= near[:, -1:]) | (place == answers), -torch.inf)
    others = near.masked_fill(is_truth, -torch.inf)
    listed = 1 + (others > -torch.inf).sum(1, keepdim=True)
    seen = (far > -torch.inf).sum(1, keepdim=True)
    every = torch.cat([truth, others, far], 1).double()
    weight = torch.ones_like(every)
    weight[:, 1 + _NEAR :] = (candidates - listed).clamp(min=1) / seen.clamp(min=1)
    log_weight = weight.log().masked_fill(every == -torch.inf, -torch.inf)
    rank = 1.0 + above + same / 2
    best, right = near[:, :TOP].double(), is_truth[:, :TOP]
    columns = (every, log_weight, best, right, rank.double(), candidates[:, 0].double())
    return tuple(column.cpu() for column in columns)


def _padded(values: Tensor, width: int, value: float = -torch.inf) -> Tensor:
    """Columns of values, [b, width]."""
    return torch.nn.functional.pad(values, (0, width - values.shape[1]), value=value)
