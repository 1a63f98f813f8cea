"""The ranking kernels against the PyTorch path of `Ranker`.

On a CPU the comparison is this file run as a module, by the interpreter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pytest
import torch
from torch import Tensor

import dicgrl.kernels
from dicgrl.evaluation import Ranker, Ranks
from dicgrl.evaluation.ranks import OWN_HIGHER
from dicgrl.models import Components, KnowledgeModel
from dicgrl.models.queries.likeness import Likeness, Modulus, Norm
from dicgrl.models.queries.ranks import QueryCounts
from tests.kernels.interpreter import interpreted
from tests.kernels.test_training import DECODERS, kernels, made

DIVISIONS = {
    "plain": None,
    "learned": Components(4, 2),
    "published": Components(4, 2, routing="published"),
    "by weight": Components(5, 3, order="weight"),
}
NORMS, QUERIES = ("l1", "l2"), ("distmult", "complex", "rotate")
RELATIONS = 4


@dataclass(frozen=True, slots=True)
class Case:
    """Questions, candidates, and the model that ranks."""

    division: str
    decoder: str
    dim: int = 8
    entities: int = 80
    questions: int = 20  # a tile has 8
    candidates: range | None = None
    bound: int = 1 << 20

    def __str__(self) -> str:
        some = self.candidates
        bounds = "" if some is None else f"-{some.start}-to-{some.stop}"
        shape = f"{self.dim}-{self.entities}-{self.questions}"
        return f"{self.division}-{self.decoder}-{shape}{bounds}-{self.bound}"

    def model(self, device: str) -> KnowledgeModel:
        name, options = DECODERS[self.decoder]
        model = KnowledgeModel(name, self.dim, DIVISIONS[self.division], options, device=device)
        model.grow(self.entities, RELATIONS)
        return model

    def triples(self, count: int, seed: int) -> Tensor:
        highs = (self.entities, RELATIONS, self.entities)
        # Most questions are of relation 0: some relations need several tiles, some none.
        columns = [torch.randint(high, (count,), generator=made(seed + i)) for i, high in
                   enumerate(highs)]  # fmt: skip
        columns[1] = torch.where(columns[1] == 3, 0, columns[1])
        columns[0][::3] = 1  # questions with many answers
        return torch.stack(columns, 1)


# The interpreter needs a few ms for each question, and has smaller tiles: see the end of the file.
CASES = [
    *(Case(name, norm, 15 if name == "by weight" else 8) for name in DIVISIONS for norm in NORMS),
    *(Case(name, decoder, 20 if name == "by weight" else 8) for name in DIVISIONS for decoder in
      QUERIES),
    Case("plain", "l1", dim=7, entities=3, questions=1),
    Case("plain", "distmult", dim=7, entities=3, questions=1),
    Case("plain", "l2", dim=25, questions=33, candidates=range(9, 75)),
    Case("plain", "complex", dim=50, questions=33, candidates=range(9, 75)),
    Case("learned", "l1", questions=33, candidates=range(64, 79)),
    Case("learned", "rotate", questions=33, candidates=range(64, 79)),
    Case("learned", "l1", candidates=range(5, 5)),
    Case("plain", "l1", questions=0),
    # Few questions and few candidates at a time: 19 and 10, then 19 and 14.
    Case("learned", "l1", dim=4, entities=40, bound=170),
    Case("plain", "l2", dim=3, entities=40, bound=170),
    Case("learned", "distmult", dim=4, entities=40, bound=170),
    Case("plain", "rotate", dim=4, entities=40, bound=170),
]  # fmt: skip
LARGE = [
    *(Case(name, norm, 20, entities=1100, questions=70) for name in DIVISIONS for norm in NORMS),
    *(Case(name, decoder, 40, entities=1100, questions=70) for name in DIVISIONS for decoder in
      QUERIES),
    Case("plain", "l2", dim=25, entities=1100, questions=129, candidates=range(9, 1040)),
    Case("plain", "rotate", dim=50, entities=1100, questions=129, candidates=range(9, 1040)),
    Case("learned", "l1", dim=20, entities=1100, questions=129, candidates=range(64, 97)),
    Case("learned", "l1", dim=20, entities=150, questions=70, bound=1000),
    Case("plain", "l2", dim=20, entities=150, questions=70, bound=2000),
    Case("learned", "complex", dim=40, entities=150, questions=70, bound=2000),
]  # fmt: skip


def ranked(case: Case, model: KnowledgeModel, device: str, switch: str) -> Ranks:
    known = torch.cat([case.triples(600, 1), case.triples(case.questions, 5)])
    candidates = range(case.entities) if case.candidates is None else case.candidates
    with kernels(switch):
        assert isinstance(model.fast_counts(), QueryCounts) is (switch == "1")
        ranker = Ranker(known.to(device), RELATIONS, case.bound)
        asked = torch.cat([case.triples(case.questions // 2, 5), case.triples(0, 6)])
        asked = torch.cat([asked, case.triples(case.questions - len(asked), 7)])
        return ranker.rank(model, asked.to(device), candidates)


def compare_whole_numbers(case: Case, device: str) -> None:
    """Small whole numbers have no rounding, so that ranks and ties are the same in any order."""
    model = case.model(device)
    for table in (model.entities, model.relations):
        table.rows.copy_(torch.randint(-1, 2, table.rows.shape, generator=made(len(table))))
    if case.decoder == "rotate":  # a turn by another angle, and most moduli, are no whole numbers
        model.relations.rows.zero_()
        model.entities.rows[:, 1::2] = 0
    expected, found = (ranked(case, model, device, switch) for switch in "01")
    for name in ("higher", "equal", "candidates", "own"):
        assert torch.equal(getattr(found, name), getattr(expected, name)), f"{case}: {name}"
    if case.questions > 1 and case.candidates is None:
        assert (expected.equal > 0).any() and (expected.higher > 0).any()


def compare_twins(case: Case, device: str) -> None:
    """Entities with equal vectors have equal scores, wherever they are; and ranks are right."""
    model = case.model(device)
    rows = model.entities.rows.view(case.entities, -1)
    half = case.entities // 2
    rows[case.entities - half :] = rows[:half]
    expected, found = (ranked(case, model, device, switch) for switch in "01")
    assert torch.equal(found.candidates, expected.candidates)
    # Rounding may swap two candidates that are as good as equally far away, or make them equal.
    assert (found.equal != expected.equal).sum() <= found.equal.numel() // 50, case
    assert ((found.equal - expected.equal) % 2 == 0).all(), case
    assert ((found.higher - expected.higher).abs() <= 2).all()  # twins go together


def not_a_number(decoder: str, device: str) -> None:
    model = Case("plain", decoder, entities=11).model(device)
    model.entities.rows[4] = torch.nan
    triples = torch.tensor([[0, 0, 4], [1, 0, 2]], device=device)
    with kernels("1"):
        ranks = Ranker(triples[:0], 1).rank(model, triples, range(11))
    assert ranks.realistic[1].tolist()[0] == 11 and ranks.higher[1, 1] >= 1
    assert ranks.own is not None and ranks.own.tolist()[1][0] == OWN_HIGHER


def distances_of_all(likeness: Likeness, device: str) -> None:
    """Scores of all pairs, of tiles that are full and that are not."""
    queries = torch.randn(11, 14, generator=made(1)).to(device)
    candidates = torch.randn(150, 14, generator=made(2)).to(device)
    candidates[70] = queries[9]
    with torch.no_grad(), kernels("1"):
        found = likeness.matrix(queries, candidates)
        nothing = likeness.matrix(queries[:0], candidates), likeness.matrix(queries, candidates[:0])
    expected = likeness.of(queries.double()[:, None], candidates.double()[None])
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)
    assert found[9, 70] == 0
    assert [tuple(each.shape) for each in nothing] == [(0, 150), (11, 0)]


DISTANCES = Norm(1), Norm(2), Modulus()
CHECKS: list[tuple[str, Callable[[str], None]]] = [
    *((f"whole {case}", partial(compare_whole_numbers, case)) for case in CASES),
    *((f"twins {case}", partial(compare_twins, case)) for case in CASES),
    *((f"not a number {name}", partial(not_a_number, name)) for name in ("l1", *QUERIES)),
    *((f"all of {kind}", partial(distances_of_all, kind)) for kind in DISTANCES),
]
LARGE_CHECKS: list[tuple[str, Callable[[str], None]]] = [
    *((f"whole {case}", partial(compare_whole_numbers, case)) for case in LARGE),
    *((f"twins {case}", partial(compare_twins, case)) for case in LARGE),
]
each = pytest.mark.parametrize(
    "check", [pytest.param(check, id=name) for name, check in CHECKS + LARGE_CHECKS]
)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@each
def test_kernels_on_the_gpu(check: Callable[[str], None]) -> None:
    pytest.importorskip("triton")
    check("cuda")


def test_kernels_in_the_interpreter() -> None:
    assert interpreted(__name__) == [name for name, _ in CHECKS]


@pytest.mark.skipif(not dicgrl.kernels._FOUND, reason="needs Triton")
def test_other_models_are_ranked_by_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dicgrl.kernels, "_ANYWHERE", True)
    assert KnowledgeModel("transe", 8).fast_counts() is not None
    assert KnowledgeModel("convkb", 8).fast_counts() is None
    assert KnowledgeModel("transe", 8, Components(4, 2, "nodes")).fast_counts() is None


if __name__ == "__main__":
    from dicgrl.kernels import query_ranks, ranking

    # So that a few questions and candidates, and a few known answers, fill several tiles.
    query_ranks.CANDIDATES, query_ranks._ROWS, ranking._ANSWERS = 64, 16, 16
    for label, check in CHECKS:
        check("cpu")
        print(label)
