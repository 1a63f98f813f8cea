"""One training step: loss, gradients, update. On a GPU it is recorded once and then replayed.

A step on a GPU is a few dozen short kernels, and launching them one by one takes the host longer
than the device needs to run them. A CUDA graph launches them together.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from dicgrl.training.adam import RowAdam

Objective = Callable[[Tensor, Tensor], Tensor]  # examples [b, ...], weights [b] -> loss

_WARM_UP = 2  # steps of a kind before it is recorded; recording takes as long as two steps


class Stepper:
    """Takes steps of one training set.

    Args:
        adjust: Changes the gradients before the update.
        optimiser: Makes the update.
        generator: Source of all randomness if steps may be recorded; None if not. A step that
            makes the host wait for the device is detected during warm-up and never recorded.
    """

    def __init__(
        self,
        adjust: Callable[[], None],
        optimiser: RowAdam,
        generator: torch.Generator | None,
    ) -> None:
        self._adjust = adjust
        self._optimiser = optimiser
        self._generator = generator
        self._seen: dict[tuple[object, ...], int] = {}
        self._records: dict[tuple[object, ...], _Record] = {}
        self._used: set[tuple[object, ...]] = set()  # kinds of steps since `end_epoch`
        self._movable: tuple[Tensor | None, ...] = ()

    def __call__(self, objective: Objective, examples: Tensor, weight: Tensor) -> Tensor:
        """Take a step; the loss is returned as a detached copy."""
        if not examples.is_cuda or self._generator is None:
            return self._step(objective, examples, weight)
        movable = tuple(table.movable for table in self._optimiser.tables)
        if any(now is not then for now, then in zip(movable, self._movable, strict=False)):
            self._seen, self._records = {}, {}  # not needed any more, and each holds memory
        self._movable = movable
        key = (objective, examples.shape)
        self._used.add(key)
        self._seen[key] = self._seen.get(key, 0) + 1
        if self._seen[key] < _WARM_UP:  # also compiles kernels and makes the optimiser's state
            return self._step(objective, examples, weight)
        if self._seen[key] == _WARM_UP:
            with _waits() as waits:
                loss = self._step(objective, examples, weight)
            if waits:  # cannot be recorded, and neither can similar steps of this training set
                self._generator = None
            return loss
        if key not in self._records:
            self._records[key] = self._record(objective, examples, weight, self._generator)
        record = self._records[key]
        record.examples.copy_(examples)
        record.weight.copy_(weight)
        record.graph.replay()
        return record.loss.clone()

    def end_epoch(self) -> None:
        """Drop records of steps that the last epoch did not take, as each holds memory."""
        self._seen = {key: count for key, count in self._seen.items() if key in self._used}
        self._records = {key: record for key, record in self._records.items() if key in self._used}
        self._used = set()

    def _step(self, objective: Objective, examples: Tensor, weight: Tensor) -> Tensor:
        loss = objective(examples, weight)
        loss.backward()  # type: ignore[no-untyped-call]
        self._adjust()
        self._optimiser.step()
        return loss.detach()

    def _record(
        self, objective: Objective, examples: Tensor, weight: Tensor, generator: torch.Generator
    ) -> _Record:
        examples, weight = examples.clone(), weight.clone()
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(generator)
        with torch.cuda.graph(graph):
            loss = self._step(objective, examples, weight)
        return _Record(graph, examples, weight, loss)


@contextmanager
def _waits() -> Iterator[list[str]]:
    """Collect PyTorch's warnings about operations that make the host wait for the device."""
    before = torch.cuda.get_sync_debug_mode()
    found: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield found
        finally:
            torch.cuda.set_sync_debug_mode(before)
            found += [str(w.message) for w in caught if "synchronizing CUDA" in str(w.message)]


@dataclass(frozen=True, slots=True)
class _Record:
    graph: torch.cuda.CUDAGraph
    examples: Tensor
    weight: Tensor
    loss: Tensor
