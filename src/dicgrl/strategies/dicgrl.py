"""DiCGRL: a new part activates related old examples and updates only their common components.

As published (`arrive_epochs=0`, `start=random`, `shield=0`, `budget=all`): in every epoch batches
of new and of activated examples alternate; activated ones are routed by the attention of before the
part, and of old rows only the common components may change. Where a step passes a whole network,
it learns from both.

Two additions make it bounded. New rows may start from what the graph says about them and first
learn alone, while all old rows are closed (`arrive_epochs`). Meanwhile a shield protects old
answers from newcomers: some old examples are compared with the new entities only, which teaches
the newcomers to keep out of places that are taken, behind a given rank in each question
(`shield_rank`); they may be those that the part activates (`shield=activated`), so that one budget
serves both. Then the published step runs within its budget, old rows learn the more slowly the more
is known of them already (`pace`), and may move only so far (`max_drift`). In a network nothing
arrives alone: there the shield holds old nodes to their class probabilities during that step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from dicgrl.errors import UserError
from dicgrl.graph.arrays import IntArray, distinct
from dicgrl.models.table import RowCopies
from dicgrl.settings import ACTIVATED, ContinualSettings
from dicgrl.strategies.base import Learned, Strategy
from dicgrl.tasks.base import ExampleGroup, Replay, Run
from dicgrl.training import TrainingSet
from dicgrl.training.loop import Monitor, shuffled
from dicgrl.training.stepper import Objective


class DiCGRL(Strategy, name="dicgrl"):
    """Activates related old examples and updates their common components (the paper's method)."""

    divided = True

    def __init__(self, settings: ContinualSettings) -> None:
        super().__init__(settings)
        if not getattr(settings, "components", 0):
            raise UserError(
                "strategy dicgrl updates components: it needs a disentangled model, such as "
                "components=8 top=4"
            )

    def later(self, run: Run, monitor: Monitor | None) -> Learned:
        """See `Strategy`."""
        settings, learned, before = self.settings, Learned(), _Before(run)
        arrives = settings.arrive_epochs > 0 and any(
            len(run.model.tables()[name]) > old for name, old in run.old_rows().items()
        )
        updates = settings.later_epochs > 0 or not (arrives and run.brings_news_only())
        rows = run.examples("train", run.newest)
        weight = torch.ones(len(rows), device=rows.device)
        part = _Part(ExampleGroup(run.objective(rows), rows, weight), before)
        stages = [self._arrive] if arrives else []
        if updates:
            stages.insert(0 if settings.arrive_last else len(stages), self._update)
        for stage in stages:
            try:
                stage(run, part, learned, monitor)
            finally:
                run.open_all()
        learned.replayed = len(part.replayed)
        if settings.average:
            before.average()
            validate = run.validator()
            if validate is not None and learned.fits:
                learned.fits[-1].best = validate()  # of the weights that are kept
        drift = before.drift() if run.has_rows else run.drift()
        if drift:
            learned.details["drift"] = drift
        return learned

    def _activated(self, run: Run, part: _Part, learned: Learned) -> Replay:
        """What the part activates within its budget, for the stage that comes first to say."""
        if part.activated is None:
            part.activated = run.activate(self.budget(run))
            learned.candidates = part.activated.candidates
            learned.activated = part.activated.activated
        return part.activated

    def _raise_shield(self, run: Run, part: _Part, learned: Learned) -> None:
        """Choose the old examples that protect old answers from what is new."""
        if self.settings.shield == ACTIVATED:
            replay = self._activated(run, part, learned)
            examples, positions = replay.examples, replay.positions
        else:
            examples, positions = run.draw_shield()
        shield = run.shield(examples)
        if shield is not None:
            part.shield = [shield]
            part.replayed = distinct(part.replayed, positions)

    def _arrive(self, run: Run, part: _Part, learned: Learned, monitor: Monitor | None) -> None:
        """Let what is new learn alone."""
        self._raise_shield(run, part, learned)
        run.open_new()
        schedule = replace(self.settings.schedule(), epochs=self.settings.arrive_epochs)
        lesson = _Mixed(part.new, *part.shield, at_once=run.at_once)
        learned.fits.append(run.fit(lesson, monitor, schedule))

    def _update(self, run: Run, part: _Part, learned: Learned, monitor: Monitor | None) -> None:
        """Let new examples and the old ones that they activate change what they share."""
        settings = self.settings
        schedule = settings.later_schedule()
        if not settings.later_epochs and settings.arrive_epochs:
            schedule = replace(schedule, epochs=settings.arrive_epochs)
        replay = self._activated(run, part, learned)
        if not len(part.new.examples) and not len(replay.examples):
            return  # a shield alone has nothing to shield from
        if not run.has_rows:  # nothing has arrived alone
            self._raise_shield(run, part, learned)
        guards = part.shield if settings.guard or not run.has_rows else []
        lesson = _Alternating(run, part, replay, guards, self.budget(run))
        learned.fits.append(run.fit(lesson, monitor, schedule))
        learned.candidates, learned.activated = lesson.candidates, lesson.activated
        part.replayed = distinct(part.replayed, lesson.used)


@dataclass(slots=True)
class _Part:
    """What the stages of a part share.

    Attributes:
        new: Its examples.
        before: What old rows were before it.
        shield: Old examples that protect old answers; none or one course.
        activated: What the part activates, once a stage has asked.
        replayed: Positions of all old examples that were used.
    """

    new: ExampleGroup
    before: _Before
    shield: list[ExampleGroup] = field(default_factory=list)
    activated: Replay | None = None
    replayed: IntArray = field(default_factory=lambda: np.empty(0, np.int64))


class _Mixed(TrainingSet):
    """Examples of several kinds whose batches take turns, evenly spread over an epoch.

    Where a step learns from all examples there are, these are the examples of all kinds.
    """

    def __init__(self, *courses: ExampleGroup, at_once: bool) -> None:
        super().__init__(*courses[0][:3])
        self._at_once = at_once
        self._teach(*courses)

    def _teach(self, *courses: ExampleGroup) -> None:
        self.courses = [course for course in courses if len(course.examples)]
        if self._at_once and self.courses:
            self.courses = [_all_of(self.courses)]

    @property
    def capturable(self) -> bool:
        return True  # the objectives are the same in every step; only their turns differ

    def batches(
        self, epoch: int, size: int, generator: torch.Generator
    ) -> Iterable[tuple[Objective, Tensor, Tensor]]:
        del epoch
        if self._at_once:
            for course in self.courses:
                yield course.objective, course.examples, course.weight
            return
        turns = []
        for course in self.courses:
            batches = shuffled(len(course.examples), size, generator, course.most)
            turns += [((i + 0.5) / len(batches), course, b) for i, b in enumerate(batches)]
        for _, course, chosen in sorted(turns, key=lambda turn: turn[0]):
            yield course.objective, course.examples[chosen], course.weight[chosen]


def _all_of(courses: Sequence[ExampleGroup]) -> ExampleGroup:
    """The examples of several courses as one: its loss is the weighted mean over all of them."""
    objectives, examples, weights, _ = zip(*courses, strict=True)
    sizes = [len(each) for each in examples]

    def objective(examples: Tensor, weight: Tensor) -> Tensor:
        split = zip(
            objectives, torch.split(examples, sizes), torch.split(weight, sizes), strict=True
        )
        losses = [of_course(*given) * given[1].sum() for of_course, *given in split]
        return torch.stack(losses).sum() / weight.sum().clamp(min=1e-12)

    return ExampleGroup(objective, torch.cat(examples), torch.cat(weights))


class _Alternating(_Mixed):
    """New examples and the old ones that they activate, anew every few epochs."""

    def __init__(
        self, run: Run, part: _Part, replay: Replay, guards: list[ExampleGroup], budget: int
    ) -> None:
        super().__init__(part.new, at_once=run.at_once)
        self._run, self._part, self._guards, self._budget = run, part, guards, budget
        self.candidates = self.activated = 0
        self.used = np.empty(0, np.int64)
        self._replay(replay)  # now: copies of what may change are taken before the first epoch

    def _replay(self, replay: Replay) -> None:
        self._run.open_concerned(replay)
        self._part.before.cover()
        objective = self._run.objective(replay.examples, old=True)
        activated = ExampleGroup(objective, replay.examples, replay.weight)
        self._teach(self._part.new, activated, *self._guards)
        self.candidates = max(self.candidates, replay.candidates)
        self.activated = max(self.activated, replay.activated)
        self.used = distinct(self.used, replay.positions)

    def batches(
        self, epoch: int, size: int, generator: torch.Generator
    ) -> Iterable[tuple[Objective, Tensor, Tensor]]:
        every = self._run.settings.refresh
        if epoch > 1 and every and (epoch - 1) % every == 0:
            self._replay(self._run.activate(self._budget, self.used))
        return super().batches(epoch, size, generator)

    def settle(self, epoch: int) -> None:
        del epoch
        if self._run.settings.max_drift:
            self._part.before.bound(self._run.settings.max_drift)


class _Before:
    """What old rows and weights were before a part; the cost follows the rows that may change."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._old = run.old_rows()
        tables = run.model.tables()
        self._rows = {name: RowCopies(table, state=False) for name, table in tables.items()}
        self._dense = {n: p.detach().clone() for n, p in run.model.named_parameters()}

    def cover(self) -> None:
        for rows in self._rows.values():
            rows.cover()

    def _moved(self) -> Iterator[tuple[RowCopies, Tensor, Tensor, Tensor]]:
        for name, rows in self._rows.items():
            for ids, values in rows.copies:
                old = ids < self._old[name]
                before = values["rows"][old]
                yield rows, ids[old], before, rows.table.rows[ids[old]] - before

    @torch.no_grad()
    def bound(self, most: float) -> None:
        """Pull rows back that moved farther than a share of their length."""
        for rows, ids, before, change in self._moved():
            far = change.norm(dim=1) / (most * before.norm(dim=1)).clamp(min=1e-12)
            rows.table.rows[ids] = before + change / far.clamp(min=1)[:, None]

    @torch.no_grad()
    def drift(self) -> dict[str, float]:
        """How far old rows moved, as a share of their length: the mean and the farthest."""
        shares = [
            change.norm(dim=1) / before.norm(dim=1).clamp(min=1e-12)
            for _, _, before, change in self._moved()
            if len(before)
        ]
        if not shares:
            return {"mean": 0.0, "largest": 0.0, "rows": 0}
        every = torch.cat(shares)
        changed = every > 0
        mean = every.sum() / changed.sum().clamp(min=1)
        return {
            "mean": mean.item(),
            "largest": every.max().item(),
            "rows": int(changed.sum()),
        }

    @torch.no_grad()
    def average(self) -> None:
        """Average dense weights with those of before, by the training examples behind each.

        What came with the part, such as the weights of a new class, has none of before.
        """
        run = self._run
        old = run.count("train", 0, run.newest) / max(run.count("train"), 1)
        rows = run.old_weights()
        for name, parameter in run.model.named_parameters():
            before = self._dense[name]
            if name in rows:
                parameter[: rows[name]].lerp_(before[: rows[name]], old)
            else:
                parameter.lerp_(before, old)
