"""Settings of vectors: how long they are, and how they are divided into components."""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override

from dicgrl.common.options import Section, option
from dicgrl.models.components import Components
from dicgrl.models.reciprocal import check_plain

MAX_COMPONENTS = 62  # a set of components is one int64


@dataclass(frozen=True)
class DivisionSettings(Section):
    """How vectors are divided into components."""

    components: int = option(
        0,
        "Number of components that a vector is divided into; 0 for a plain model. On a GPU, "
        "components with a multiple of four numbers learn fastest.",
        least=0,
        most=MAX_COMPONENTS,
    )
    top: int = option(4, "Number of components that a triple or edge uses.", needs="components")
    routing: str = option(
        "learned",
        "What trains attention: learned (the task) or published (the normalisation loss).",
        needs="components",
    )

    def division(self) -> Components | None:
        """How vectors are divided; None for a plain model."""
        if not self.components:
            return None
        return Components(self.components, self.top, attention="nodes", routing=self.routing)

    @override
    def check(self) -> None:
        self.division()


@dataclass(frozen=True)
class VectorSettings(DivisionSettings):
    """Vectors of entities and relations."""

    dim: int = option(
        200,
        "Numbers of an entity's vector that a triple uses: all of a plain vector, or those of "
        "`top` components of a divided one. A component has dim / top numbers, rounded up to a "
        "multiple of four if that is not a whole number; the whole vector has `components` times "
        "as many.",
        least=1,
    )
    precision: str = option(
        "float32",
        "Type of the entities' numbers: float32, or bfloat16, which halves their memory and is "
        "rounded stochastically. Arithmetic is always float32.",
        choices=("float32", "bfloat16"),
    )
    attention: str = option(
        "relation", "Where attention comes from: relation, nodes or triple.", needs="components"
    )
    order: str = option(
        "component",
        "How chosen components are concatenated: component or weight.",
        needs="components",
    )
    normalise: bool = option(
        False, "Whether vectors are scaled to length 1 for scoring (stored ones are not)."
    )
    inverses: bool = option(
        False,
        "Whether a relation has a second vector for questions about heads; triples are then "
        "learned in both directions. Only for plain models.",
    )

    @override
    def check(self) -> None:
        divided = self.division()
        if self.inverses:
            check_plain(divided)

    @override
    def division(self) -> Components | None:
        if not self.components:
            return None
        return Components(self.components, self.top, self.attention, self.routing, self.order)

    def form(self) -> dict[str, bool]:
        """How vectors are scored, as arguments of a model."""
        return {"normalise": self.normalise, "inverses": self.inverses}

    @property
    def active(self) -> int:
        """How many numbers a triple uses of a vector: `dim`, rounded up to whole components."""
        divided = self.division()
        return self.dim if divided is None else divided.top * divided.size(self.dim)

    @property
    def length(self) -> int:
        """Length of a whole vector."""
        divided = self.division()
        return self.dim if divided is None else divided.count * divided.size(self.dim)


@dataclass(frozen=True)
class EncoderSettings(DivisionSettings):
    """Layers of message passing."""

    hidden: int = option(8, "Length of a head's or component's hidden vector.", least=1)
    heads: int = option(8, "Heads of a plain model.", least=1)
    layers: int = option(2, "Layers of message passing.", least=1, most=1000)
    dropout: float = option(
        0.6, "Share of features and neighbour weights dropped in training.", least=0, below=1
    )
