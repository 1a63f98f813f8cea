"""What each of two processes does for the tests beside it, and writes for them to compare."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor
from typing_extensions import override

from dicgrl.models.table import Table
from dicgrl.parallel.group import Group, together
from dicgrl.parallel.model import ShardedModel
from dicgrl.parallel.objective import ShardedObjective, Step
from dicgrl.parallel.ranks import ShardedRanker, best_answers
from dicgrl.parallel.sampling import OwnSampler
from dicgrl.parallel.table import ShardedTable
from dicgrl.training.adam import RowAdam
from dicgrl.training.objective import Drawn
from tests.parallel import cases

WIDTH, ROWS = 3, 46
STATE = ("rows", "moment1", "moment2", "square", "steps")


def write(place: Path, name: str, values: dict[str, Tensor]) -> None:
    save_file({key: value.contiguous() for key, value in values.items()}, place / name)


def taken(rank: int, step: int) -> tuple[Tensor, Tensor]:
    """Entities that a rank uses in a step, some of them those of others, and their gradients."""
    generator = torch.Generator().manual_seed(10 * step + rank)
    entities = torch.randperm(ROWS // 2, generator=generator)[: 9 + rank]
    # Few binary digits, so that sums are the same in any order.
    gradients = torch.randint(-8, 8, (len(entities) * 2, WIDTH), generator=generator) / 4
    return entities, gradients


def both_rows(entities: Tensor) -> Tensor:
    return (2 * entities[:, None] + torch.arange(2)).flatten()


def tables(group: Group, place: Path) -> None:
    """Three steps of Adam on rows that ranks fetch from each other, and on an ordinary table."""
    alone, dealt = Table(WIDTH), ShardedTable(WIDTH, "cpu", torch.float32, group, count=2)
    for part in torch.split(torch.randn(ROWS, WIDTH, generator=torch.Generator()), 31):
        alone.grow(part)
        dealt.grow(part)
    same = torch.tensor([[3, 3, 45], [0, 17, 8]])
    found = {"dealt gathered": dealt.gather(same), "alone gathered": alone.rows[same]}
    each, own = RowAdam([alone], lr=0.1), RowAdam([dealt.own], lr=0.1)
    for step in range(3):
        entities, gradients = taken(group.rank, step)
        fetched = dealt.fetch(entities)
        found[f"dealt fetched {step}"] = fetched.rows
        found[f"alone fetched {step}"] = alone.rows[both_rows(entities)]
        used = torch.arange(len(gradients)) % 5 > 0
        fetched.send_back(gradients, used)
        for rank in range(group.size):
            some, theirs = taken(rank, step)
            used = torch.arange(len(theirs)) % 5 > 0
            alone.accumulate(both_rows(some)[used], theirs[used])
        if step == 1:  # some may not change, others slowly, some only where they are spoken of
            for table in (alone, dealt):
                table.restrict(torch.arange(5, 40), torch.linspace(0.1, 1.0, 35))
                table.rest(torch.arange(10, 20))
                table.wake(torch.tensor([12, 13, 12]))
        each.step()
        own.step()
    for table in (alone, dealt):
        table.restrict(None)
        table.put(torch.tensor([4, 9]), torch.full((2, WIDTH), 7.0))
        table.slow(torch.linspace(0.1, 1.0, ROWS))
    alone.pull(torch.ones(ROWS, WIDTH))
    dealt.own.pull(torch.ones(len(dealt.own), WIDTH))
    each.step()
    own.step()
    for name, values in dealt.hand_in(STATE).items():
        found |= {f"dealt {name}": values, f"alone {name}": alone.snapshot()[name]}
    write(place, f"tables {group.rank}", found)


class Noted(ShardedObjective):
    """Notes the negatives that it draws, by their ids."""

    noted: list[Drawn]
    own: Tensor

    @override
    def _drawn(self, triples: Tensor, share: int) -> Drawn:
        heads, tails, mask = super()._drawn(triples, share)
        self.noted.append((self.own[heads], self.own[tails], mask))
        return heads, tails, mask


def learn(group: Group, place: Path) -> None:
    """Two training steps of each model; negatives are written beside what was learned."""
    for case in cases.MODELS:
        for share in cases.SHARES:
            model = ShardedModel.of(cases.model_of(case), group, torch.device("cpu"))
            table = model.sharded
            opened: list[Step] = []
            if group.rank:
                model.relations.rows.add_(1e-3)
            model.agree()
            generator = torch.Generator().manual_seed(group.rank)
            sampler = OwnSampler(
                cases.KNOWN, table.shards, group.rank, cases.ENTITIES, cases.RELATIONS, generator,
                cases.RETIRED,
            )  # fmt: skip
            objective = Noted(cases.objective_of(share), sampler, opened.append)
            objective.noted, objective.own = [], table.own_entities()
            optimiser = RowAdam(model.own_tables().values(), lr=0.1)
            losses = []
            for batch in (cases.BATCH, cases.BATCH[:1]):  # the second has no triple for rank 1
                loss = objective(model, batch, cases.WEIGHT[: len(batch)])
                loss.backward()
                opened.pop().settle(model)
                optimiser.step()
                losses.append(loss.detach().reshape(1))
            found = {f"loss {i}": loss for i, loss in enumerate(losses)}
            for number, (heads, tails, mask) in enumerate(objective.noted):
                found |= {f"heads {number}": heads, f"tails {number}": tails}
                found |= {} if mask is None else {f"mask {number}": mask}
            whole = model.whole()
            if whole is not None:
                for name, each in whole.tables().items():
                    found |= {f"{name} {key}": rows for key, rows in each.snapshot().items()}
            write(place, f"learn {case} {share} {group.rank}", found)


def ranks(group: Group, place: Path) -> None:
    """Ranks among several ranges, and best answers, of each model."""
    for case in cases.MODELS:
        model = ShardedModel.of(cases.model_of(case), group, torch.device("cpu"))
        ranker = ShardedRanker(cases.KNOWN, cases.RETIRED, memory_bound=20_000)
        found = {}
        for number, among in enumerate(cases.RANGES):
            made = ranker.rank(model, cases.ASKED, among)
            assert made.own is not None
            found |= {f"higher {number}": made.higher, f"equal {number}": made.equal}
            found |= {f"candidates {number}": made.candidates, f"own {number}": made.own}
        for side in ("head", "tail"):
            ids, scores = best_answers(model, cases.ASKED, side, 25)
            found |= {f"{side} ids": ids, f"{side} scores": scores}
            some = cases.ASKED[cases.ASKED[:, 1] == 0][:4]
            for number, among in enumerate((*cases.RANGES, range(5, 5))):
                ends = among.start, among.stop
                found[f"{side} every {number}"] = model.candidate_scores(some, side, *ends)
        write(place, f"ranks {case} {group.rank}", found)


if __name__ == "__main__":
    with together() as started:
        assert started is not None
        for work in (tables, learn, ranks):
            work(started, Path(sys.argv[1]))
        started.wait()  # nobody leaves while another still needs it
