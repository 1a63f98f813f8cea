"""Strategies put together from ingredients, such as a start, a replay, a penalty or a shield.

A composed strategy learns the new examples of a part, and each ingredient adds something to that.
So a baseline is a list of ingredients, and an ablation takes one line:

    class Mine(Composed, name="mine"):
        ingredients = (Replay, Penalty)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from typing_extensions import override

from dicgrl.common.options import Section
from dicgrl.strategies.base import LaterSettings, Learned, Strategy
from dicgrl.strategies.budget import BudgetSettings
from dicgrl.strategies.mixed import MixedSet
from dicgrl.trainers import ExampleGroup, Trainer
from dicgrl.training import Positives, TrainingSet
from dicgrl.training.loop import Monitor
from dicgrl.training.stepper import Objective


class Ingredient:
    """One addition to learning the new examples of a part; every hook is optional.

    Attributes:
        Settings: Its own settings, which become settings of the strategy.
        capturable: Whether `adjust` does the same work on the host each time, so that a GPU may
            replay a recorded step.

    Args:
        settings: The settings of the whole strategy.
    """

    Settings: ClassVar[type[Section]] = Section
    capturable: ClassVar[bool] = True

    def __init__(self, settings: Any) -> None:
        self.settings = settings

    def start(self, trainer: Trainer) -> None:
        """Change new rows before they are asked about and learned."""

    def begin(self, trainer: Trainer) -> None:
        """Prepare for learning the newest part, whose new rows are set up; `end` follows."""

    def end(self, trainer: Trainer) -> None:
        """Clean up, also if learning has failed: all rows may change again."""

    def end_epoch(self, trainer: Trainer, epoch: int) -> None:
        """Called after each epoch, counted from 1, before the model is validated."""

    def order(self, trainer: Trainer) -> Tensor | None:
        """Positions of the new examples in the order of every epoch; None to shuffle them."""
        del trainer
        return None

    def mixed_in(self, trainer: Trainer) -> Tensor | None:
        """Old examples to learn together with the new ones."""

    def taking_turns(self, trainer: Trainer) -> list[ExampleGroup]:
        """Examples with their own objective, whose batches alternate with those of new ones."""
        del trainer
        return []

    def asked_besides(self, trainer: Trainer) -> list[Tensor]:
        """Old examples whose loss `adjust` needs, but which are not learned."""
        del trainer
        return []

    def adjust(self, trainer: Trainer, objective: Objective) -> None:
        """Change the gradients of a step, between the backward pass and the optimiser."""

    def remember(self, trainer: Trainer) -> None:
        """Store what the next part will need, after a part was learned."""

    def retrained(self, trainer: Trainer) -> None:
        """Like `remember`, after a new model has learned all parts."""
        self.remember(trainer)

    def repaired(self, trainer: Trainer) -> None:
        """Adapt what `remember` stored to a repaired model."""

    def state(self) -> dict[str, Tensor]:
        """What `remember` stored outside the model, for a checkpoint."""
        return {}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Restore what `state` returned."""

    @property
    def replayed(self) -> int:
        """Number of old examples that were used for the newest part, each counted once."""
        return 0

    @property
    def besides(self) -> Positives:
        """Examples that `adjust` and `remember` passed through the model for the newest part."""
        return Positives()

    @classmethod
    def overrides(cls, hook: str) -> bool:
        """Whether the class implements a hook."""
        return getattr(cls, hook) is not getattr(Ingredient, hook)


class Composed(Strategy):
    """Learns new examples, with the additions of its ingredients.

    Attributes:
        ingredients: The ingredients, in order.

    Example:
        >>> class Both(Composed, name="both-of-the-docs"):
        ...     ingredients = (Replay,)
        >>> sorted(Both.Settings.options())
        ['budget', 'later_epochs', 'later_rate', 'start', 'validate_on']
    """

    ingredients: ClassVar[tuple[type[Ingredient], ...]] = ()

    def __init_subclass__(cls, name: str | None = None) -> None:
        ordered = any(kind.overrides("order") for kind in cls.ingredients)
        more = ("mixed_in", "taking_turns")
        if ordered and any(kind.overrides(hook) for kind in cls.ingredients for hook in more):
            raise TypeError(f"{cls.__name__}: with an order there is no place for old examples")
        if "ingredients" in cls.__dict__ and "Settings" not in cls.__dict__:
            cls.Settings = _joined(cls.__name__, cls.ingredients)
        super().__init_subclass__(name=name)

    def __init__(self, settings: Any) -> None:
        super().__init__(settings)
        self.parts = [kind(settings) for kind in self.ingredients]

    @override
    def start(self, trainer: Trainer) -> None:
        super().start(trainer)
        for part in self.parts:
            part.start(trainer)

    @override
    def later(self, trainer: Trainer, monitor: Monitor | None) -> Learned:
        return self.learn_new(trainer, monitor)

    def learn_new(
        self, trainer: Trainer, monitor: Monitor | None, weight: Tensor | None = None
    ) -> Learned:
        """Learn the newest part's examples, with the additions of the ingredients.

        Args:
            trainer: The trainer, which has taken in the part.
            monitor: Told about every epoch.
            weight: Weight of each example; equal by default.
        """
        try:
            for part in self.parts:
                part.begin(trainer)
            report = self.fit(trainer, self._training_set(trainer, weight), monitor)
        finally:
            for part in self.parts:
                part.end(trainer)
        return Learned([report], replayed=sum(part.replayed for part in self.parts))

    def _training_set(self, trainer: Trainer, weight: Tensor | None) -> TrainingSet:
        added = [part.mixed_in(trainer) for part in self.parts]
        examples = [trainer.examples("train", trainer.newest)]
        num_new = len(examples[0])
        examples += [each for each in added if each is not None]
        besides = [memory for part in self.parts for memory in part.asked_besides(trainer)]
        objective = trainer.objective(torch.cat([*examples, *besides]))
        groups = [group for part in self.parts for group in part.taking_turns(trainer)]
        rows = torch.cat(examples)
        old = len(rows) - num_new
        usual = trainer.weights(rows)  # the same as in retraining, so that comparisons are fair
        usual = torch.ones(len(rows), device=rows.device) if usual is None else usual.clone()
        if weight is not None:
            usual[:num_new] = weight
        new = ExampleGroup(objective, rows, usual)
        if groups:
            return _AdjustedTurns(self.parts, trainer, new, groups, old)
        return AdjustedSet(self.parts, trainer, new, old)

    @override
    def remember(self, trainer: Trainer) -> None:
        for part in self.parts:
            part.remember(trainer)

    @override
    def retrained(self, trainer: Trainer) -> None:
        for part in self.parts:
            part.retrained(trainer)

    @override
    def repaired(self, trainer: Trainer) -> None:
        for part in self.parts:
            part.repaired(trainer)

    @property
    @override
    def besides(self) -> Positives:
        return sum((part.besides for part in self.parts), Positives())

    @property
    @override
    def keeps_state(self) -> bool:
        return any(part.overrides("remember") for part in self.parts)

    @override
    def state(self) -> dict[str, Tensor]:
        return {name: value for part in self.parts for name, value in part.state().items()}

    @override
    def restore(self, state: dict[str, Tensor]) -> None:
        for part in self.parts:
            part.restore(state)


class Replay(Ingredient):
    """A fixed sample of old examples, drawn uniformly and learned with the new ones."""

    Settings = BudgetSettings
    _drawn = 0

    @override
    def mixed_in(self, trainer: Trainer) -> Tensor:
        memory = trainer.sample(self.settings.allowed(trainer), 0, trainer.newest)
        self._drawn = len(memory)
        return memory

    @property
    @override
    def replayed(self) -> int:
        return self._drawn


class AdjustedSet(TrainingSet):
    """Training examples whose order and gradients the ingredients may change."""

    def __init__(
        self, parts: Sequence[Ingredient], trainer: Trainer, new: ExampleGroup, old: int
    ) -> None:
        super().__init__(new.objective, new.examples, new.weight, old=old)
        self._watch(parts, trainer)

    def _watch(self, parts: Sequence[Ingredient], trainer: Trainer) -> None:
        self._parts, self._trainer = parts, trainer
        self._adjusting = [part for part in parts if part.overrides("adjust")]
        orders = (part.order(trainer) for part in parts)
        self._order = next((order for order in orders if order is not None), None)

    @override
    def batches(
        self, epoch: int, size: int, generator: torch.Generator
    ) -> Iterable[tuple[Objective, Tensor, Tensor]]:
        if self._order is None:
            yield from super().batches(epoch, size, generator)
            return
        for chosen in torch.split(self._order, size) if len(self._order) else ():
            yield self.objective, self.examples[chosen], self.weight[chosen]

    @override
    def end_epoch(self, epoch: int) -> None:
        for part in self._parts:
            part.end_epoch(self._trainer, epoch)

    @property
    @override
    def capturable(self) -> bool:
        return all(part.capturable for part in self._adjusting)

    @override
    def adjust(self) -> None:
        for part in self._adjusting:
            part.adjust(self._trainer, self.objective)


class _AdjustedTurns(AdjustedSet, MixedSet):
    """The same with groups of examples that take turns."""

    def __init__(
        self,
        parts: Sequence[Ingredient],
        trainer: Trainer,
        new: ExampleGroup,
        groups: Iterable[ExampleGroup],
        old: int,
    ) -> None:
        MixedSet.__init__(self, new, *groups, at_once=trainer.at_once, old=old)
        self._watch(parts, trainer)


def _joined(name: str, ingredients: Sequence[type[Ingredient]]) -> type[LaterSettings]:
    """Settings of a strategy: those of its ingredients, and those of all fine-tuning strategies."""
    own = [kind.Settings for kind in ingredients if kind.Settings is not Section]
    kinds = tuple(dict.fromkeys([*own, LaterSettings]))
    doc = f"Settings of {name}."
    made: type[LaterSettings] = dataclass(frozen=True)(
        type(f"{name}Settings", kinds, {"__doc__": doc, "__module__": __name__})
    )
    return made
