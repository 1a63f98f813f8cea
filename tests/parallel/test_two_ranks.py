"""Two real processes against one: rows, gradients, steps and ranks are the same."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from dicgrl.evaluation import Ranker
from dicgrl.models.knowledge import Side
from dicgrl.training.adam import RowAdam
from dicgrl.training.objective import Drawn
from tests.parallel import cases


@pytest.mark.parametrize("rank", [0, 1])
def test_rows_gradients_and_steps_of_a_dealt_table(written: Path, rank: int) -> None:
    """Bit for bit those of an ordinary table, with rows that rest, are slow or may not change."""
    found = load_file(written / f"tables {rank}")
    dealt = {name.removeprefix("dealt ") for name in found if name.startswith("dealt ")}
    assert {"gathered", "fetched 2"} <= dealt
    assert {"rows", "moment1", "moment2", "steps"} <= dealt or rank
    for name in dealt:
        assert torch.equal(found[f"dealt {name}"], found[f"alone {name}"]), name


@pytest.mark.parametrize("case", cases.MODELS)
@pytest.mark.parametrize("share", cases.SHARES)
def test_a_training_step(written: Path, case: str, share: int) -> None:
    """That of one process with the same negatives, also where a rank has no triples."""
    found = [load_file(written / f"learn {case} {share} {rank}") for rank in range(2)]
    model, objective = cases.model_of(case), cases.objective_of(share)
    optimiser = RowAdam(model.tables().values(), lr=0.1)
    draws = 1 + model.inverses
    taken = [0, 0]
    for step, batch in enumerate((cases.BATCH, cases.BATCH[:1])):
        weight = cases.WEIGHT[: len(batch)]
        total = torch.zeros(())
        for rank, mine in enumerate(batch.tensor_split(2)):
            if not len(mine):
                continue
            weights = weight.tensor_split(2)[rank]
            drawn = [_drawn(found[rank], taken[rank] + number) for number in range(draws)]
            taken[rank] += draws
            part = objective.compare(model, mine, weights, drawn)
            total = total + part * weights.sum() / weight.sum()
        total.backward()
        optimiser.step()
        for each in found:
            close = {"rtol": 1e-3, "atol": 0.0} if case == "bfloat16" and step else {}
            torch.testing.assert_close(each[f"loss {step}"][0], total.detach(), **close)
    for name, table in model.tables().items():
        for key, values in table.snapshot().items():
            close = {"rtol": 1e-4, "atol": 1e-5} if values.dtype == torch.float32 else {}
            if case == "bfloat16" and name == "entities" and key == "rows":
                close = {"rtol": 0.02, "atol": 0.002}  # rounded by chance, by their places
            torch.testing.assert_close(found[0][f"{name} {key}"], values, **close)


def _drawn(found: dict[str, torch.Tensor], number: int) -> Drawn:
    return found[f"heads {number}"], found[f"tails {number}"], found.get(f"mask {number}")


@pytest.mark.parametrize("case", cases.MODELS)
def test_ranks(written: Path, case: str) -> None:
    """The same counts on every rank as on one process, where scores tie, too."""
    model = cases.model_of(case)
    ranker = Ranker(cases.KNOWN, cases.RELATIONS, retired=cases.RETIRED)
    for rank in range(2):
        found = load_file(written / f"ranks {case} {rank}")
        for number, among in enumerate(cases.RANGES):
            expected = ranker.rank(model, cases.ASKED, among)
            assert expected.own is not None and expected.equal.any()
            assert torch.equal(found[f"higher {number}"], expected.higher)
            assert torch.equal(found[f"equal {number}"], expected.equal)
            assert torch.equal(found[f"candidates {number}"], expected.candidates)
            assert torch.equal(found[f"own {number}"], expected.own)


@pytest.mark.parametrize("case", cases.MODELS)
@pytest.mark.parametrize("side", ["head", "tail"])
def test_scores_of_candidates(written: Path, case: str, side: Side) -> None:
    """Every rank is told those of all, of any range."""
    model = cases.model_of(case)
    some = cases.ASKED[cases.ASKED[:, 1] == 0][:4]
    for rank in range(2):
        found = load_file(written / f"ranks {case} {rank}")
        for number, among in enumerate((*cases.RANGES, range(5, 5))):
            with torch.no_grad():
                expected = model.candidate_scores(some, side, among.start, among.stop)
            torch.testing.assert_close(found[f"{side} every {number}"], expected)


@pytest.mark.parametrize("case", [case for case in cases.MODELS if case != "divided"])
@pytest.mark.parametrize("side", ["head", "tail"])
def test_best_answers(written: Path, case: str, side: str) -> None:
    """The k best of all entities; of equal scores the lower ids."""
    model = cases.model_of(case)
    with torch.no_grad():
        every = torch.cat(
            [model.candidate_scores(one, side, 0, cases.ENTITIES) for one in cases.ASKED.split(1)]  # type: ignore[arg-type]
        )
    expected = every.sort(dim=1, descending=True, stable=True)
    for rank in range(2):
        found = load_file(written / f"ranks {case} {rank}")
        torch.testing.assert_close(found[f"{side} scores"], expected.values[:, :25])
        ids = found[f"{side} ids"]
        torch.testing.assert_close(every.gather(1, ids), expected.values[:, :25])
        assert all(len(set(row)) == 25 for row in ids.tolist())
        twins = [(row.index(20 + e), row.index(5 + e)) for row in ids.tolist() for e in range(10)
                 if 20 + e in row and 5 + e in row]  # fmt: skip
        assert twins and all(later > earlier for later, earlier in twins)
