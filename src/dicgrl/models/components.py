"""K components, attention over them and top-n routing (the paper's disentangle module).

All models share this code. A vector is K components of equal size; a triple or edge attends to them
with weights alpha and uses the n components with the highest weights.

- `attention`: where alpha comes from. `relation`: a trainable K-vector per relation (equation 1).
  `nodes`: ReLU(W2 [u^k; v^k]) (equation 4, alpha-1 of appendix A). `triple`: ReLU(W2 [u^k; r; v^k])
  (alpha-2). The last two read the vectors without sending them a gradient, so that a component
  outside the top n never gets one.
- `routing`: what trains alpha. `published`: the top n are gathered as they are, and only the
  normalisation loss trains alpha, which sharpens the random initial choice. `learned`: each
  gathered component is multiplied by alpha / stopgradient(alpha), which is 1 and does not change a
  score, but gives alpha the gradient of the task. A relation then has a vector for each of its K
  components, of which it uses the same n as the nodes, so that a different choice does not shift
  what was learned. With `published` it has one vector of length l = d n / K, as in the paper.

d is the whole length of a vector, and l its active length, which a triple uses.

The chosen components are concatenated in the order of their numbers, which is stable while alpha
changes; `order="weight"` sorts them by decreasing weight, as the authors' code does. If a ReLU
makes weights equal, which happens for a fifth of Cora's edges, the choice is made by its input.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dicgrl.errors import UserError, shown_value


@dataclass(frozen=True, slots=True)
class Components:
    """How vectors are divided and routed.

    Attributes:
        count: Number of components, K.
        top: Number of components that a triple uses, n.
        attention: Where the weights come from: relation, nodes or triple.
        routing: What trains the weights: learned or published.
        order: How the chosen components are concatenated: component or weight.
    """

    count: int = 8
    top: int = 4
    attention: str = "relation"
    routing: str = "learned"
    order: str = "component"

    def __post_init__(self) -> None:
        if not 1 <= self.top <= self.count:
            raise UserError(
                f"top={self.top} of components={self.count}: expected 1 to as many as components"
            )
        for name, allowed in (
            ("attention", ("relation", "nodes", "triple")),
            ("routing", ("learned", "published")),
            ("order", ("component", "weight")),
        ):
            if getattr(self, name) not in allowed:
                raise UserError(
                    f"{name}={shown_value(getattr(self, name))}: expected "
                    f"{' or '.join(map(repr, allowed))}"
                )

    @property
    def learned(self) -> bool:
        """Whether the task trains the attention."""
        return self.routing == "learned"

    def size(self, active: int) -> int:
        """Length of a component, so that `top` of them have at least `active` numbers.

        If they cannot have exactly as many, it is a multiple of four, which is faster in kernels.

        Example:
            >>> Components(8, 4).size(200), Components(4, 3).size(200)
            (50, 68)
        """
        whole, rest = divmod(active, self.top)
        return whole if not rest else 4 * (whole // 4 + 1)

    def choose(self, logits: Tensor) -> Tensor:
        """Numbers of the top n of K components for logits [..., K], the highest first, [..., n].

        Ties go to the lower number, so that the choice does not depend on device or algorithm.

        Example:
            >>> Components(4, 2).choose(torch.tensor([0.0, 0.3, 0.0, 0.0]))
            tensor([1, 0])
        """
        # `topk` does not specify which of several equal values it takes.
        return logits.sort(dim=-1, descending=True, stable=True).indices[..., : self.top]

    def route(self, logits: Tensor, before: Tensor | None = None) -> Route:
        """Choose the top n of K components for attention logits [..., K].

        Args:
            logits: The logits.
            before: The logits before a ReLU, which may have made some of them equal.
        """
        log_alpha = logits.log_softmax(-1)
        chosen = self.choose(logits.detach() if before is None else before.detach())
        if self.order == "component":
            chosen = chosen.sort(-1).values
        top = log_alpha.gather(-1, chosen)
        gate = (top - top.detach()).exp() if self.learned else None
        return Route(chosen, top.exp(), gate)

    def mask(self, logits: Tensor) -> Tensor:
        """Whether each of K components is among the top n for logits [..., K].

        Example:
            >>> Components(4, 2).mask(torch.tensor([0.1, 0.3, 0.0, 0.2]))
            tensor([False,  True, False,  True])
        """
        chosen = self.choose(logits)
        return torch.zeros_like(logits, dtype=torch.bool).scatter_(-1, chosen, True)


@dataclass(frozen=True, slots=True)
class Route:
    """The components that triples or edges use.

    Attributes:
        chosen: Their numbers, [..., n].
        alpha: Their attention weights, [..., n].
        gate: Ones that carry the task's gradient to alpha, [..., n]; None if the task does not
            train it.
    """

    chosen: Tensor
    alpha: Tensor
    gate: Tensor | None

    def apply(self, parts: Tensor) -> Tensor:
        """Concatenate gathered components [..., n, size] to vectors [..., n * size]."""
        if self.gate is not None:
            parts = parts * self.gate[..., None]
        return parts.flatten(-2)

    def unsqueeze(self, dim: int) -> Route:
        """The same route with one more axis before that of the components."""
        assert dim >= 0
        gate = None if self.gate is None else self.gate.unsqueeze(dim)
        return Route(self.chosen.unsqueeze(dim), self.alpha.unsqueeze(dim), gate)

    def concentration_loss(self) -> Tensor:
        """1 minus the sum of the chosen components' weights (L_norm, equation 8)."""
        return 1 - self.alpha.sum(-1)
