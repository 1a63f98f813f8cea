"""What questions are answered from: two copies of the run, one of which is always at rest.

Questions go to one copy. What is new is taken in by the other, when the last question to it has
been answered, and then questions go there. So no question waits for a new version, and none sees
half of one; it costs the memory of a second copy, and reads only what changed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any

from dicgrl.ask.asking import Asking
from dicgrl.errors import UserError
from dicgrl.graph.change import FORGET, LEARN, REPLACE, Change
from dicgrl.learner import Learner
from dicgrl.store.pending import Fact, Mark, Pending, keys_in
from dicgrl.store.run_folder import RunFolder
from dicgrl.strategies.foresight import foreseen
from dicgrl.trainers import Trainer


class Snapshot:
    """A run at one moment; it does not change while somebody uses it.

    Args:
        learner: The learner; it only answers.
        trainer: Its graph and model, with what waits to be learned.
        asking: Answers from these.
        pending: What waits.

    Attributes:
        version: Number of the version.
        kept: Whatever is made once for a snapshot, by a name of the maker's choice.
    """

    def __init__(
        self, learner: Learner, trainer: Trainer, asking: Asking, pending: Pending
    ) -> None:
        self.learner, self.trainer, self.asking = learner, trainer, asking
        self.pending = pending
        self.version = learner.version
        self.kept: dict[str, Any] = {}
        self.users = 0

    @cached_property
    def waiting(self) -> tuple[Set[Fact], Set[Fact]]:
        """What waits to be learned, and to be forgotten, in total: by `key_of` each fact."""
        learned, forgotten = self.pending.settled(self.key_of)
        return set(map(self.key_of, learned)), set(map(self.key_of, forgotten))

    @cached_property
    def key_of(self) -> Callable[[Fact], Fact]:
        """What is the same for labels of the same fact."""
        return keys_in(self.learner.trainer.graph)


class Snapshots:
    """The snapshot that questions are answered from, and the place where the next one is made.

    Only one thread calls `renew`; any may call `pinned`.

    Args:
        folder: The run.
        device: Where it answers.
    """

    def __init__(self, folder: RunFolder, device: str = "auto") -> None:
        self._folder, self._device = folder, device
        self._changed = threading.Condition()
        self._resting: Learner | None = None  # the other copy; read when it is first needed
        self._left: Snapshot | None = None  # what was answered from it last
        self._current = self._first()

    @contextmanager
    def pinned(self) -> Iterator[Snapshot]:
        """The newest snapshot, which stays as it is until the block ends."""
        with self._changed:
            snapshot = self._current
            snapshot.users += 1
        try:
            yield snapshot
        finally:
            with self._changed:
                snapshot.users -= 1
                if not snapshot.users:
                    self._changed.notify_all()

    @property
    def version(self) -> int:
        """The version that questions are answered from."""
        return self._current.version

    @property
    def current(self) -> Snapshot:
        """The newest snapshot, for what it says of itself; `pinned` is for asking it."""
        return self._current

    @property
    def mark(self) -> Mark:
        """The moment of the run that is answered from, as `RunFolder.mark` tells it."""
        return self._current.pending.mark

    def renew(self) -> None:
        """Take in what is new, then let questions go there.

        Raises:
            DataError: The run is damaged; questions are answered as before.
        """
        resting = self._rested()
        identity = self._folder.config().get("identity")
        try:
            if identity == resting.identity:
                resting.refresh()
            else:  # another run took its place
                resting = self._loaded()
            snapshot = made(resting, self._pending(resting))
        except BaseException:
            self._resting = None  # it may have been refreshed by half: it is read again
            raise
        with self._changed:
            self._left, self._current = self._current, snapshot
            self._resting = self._left.learner

    def _rested(self) -> Learner:
        """The copy that nobody uses; waits for questions that still do."""
        if self._resting is None:
            self._resting = self._loaded()
        with self._changed:
            self._changed.wait_for(lambda: self._left is None or not self._left.users)
        self._left = None
        return self._resting

    def _first(self) -> Snapshot:
        learner = self._loaded()
        return made(learner, self._pending(learner))

    def _pending(self, learner: Learner) -> Pending:
        """What waits at the moment of which a learner is; it is renewed as long as it is older."""
        pending = self._folder.pending()
        while (pending.version, pending.stamp, pending.edits) != learner.moment:
            learner.refresh()
            pending = self._folder.pending()
        return pending

    def _loaded(self) -> Learner:
        learner = Learner.load(self._folder.path, device=self._device)
        learner.check_learned()
        return learner


def made(learner: Learner, pending: Pending) -> Snapshot:
    """A snapshot of what a learner knows and of what waits to be learned.

    Args:
        learner: The learner; it must rest as long as the snapshot is used.
        pending: What waits.
    """
    asking = learner.ask
    learner.trainer.model.eval()  # several threads ask at a time
    asking.examined()  # what probabilities are made with; an old version may lack it
    trainer = _foreseen(learner, pending)
    if trainer is None:
        return Snapshot(learner, learner.trainer, asking, pending)
    ahead = learner.task.asking(trainer, learner.names)
    ahead.examined = asking.examined
    return Snapshot(learner, trainer, ahead, pending)


def _foreseen(learner: Learner, pending: Pending) -> Trainer | None:
    """What the learner will know, without having learned it; None where that is what it knows."""
    learned, forgotten = pending.settled(keys_in(learner.trainer.graph))
    part, gone = None, None
    with suppress(UserError):  # it may be refused when it is learned; until then it waits
        if learned:
            intake = learner.intake(learned)
            part = None if intake.is_empty else intake.part
    with suppress(UserError):  # none of them is known
        if forgotten:
            gone = learner.retraction(forgotten).arrays
    if part is None and gone is None:
        return None
    kind = LEARN if gone is None else FORGET if part is None else REPLACE
    with suppress(UserError):
        return foreseen(learner.trainer, Change(kind, part, gone or {}))
    return None
