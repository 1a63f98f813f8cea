"""What questions are answered from: two copies of the run, one of which is always at rest.

Questions go to one copy. What is new is taken in by the other, when the last question to it has
been answered, and then questions go there. So no question waits for a new version, and none sees
half of one; it costs the memory of a second copy, and reads only what changed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from dicgrl.ask.asking import Asking
from dicgrl.learner import Learner
from dicgrl.store.run_folder import RunFolder


class Snapshot:
    """A run at one moment; it does not change while somebody uses it.

    Args:
        learner: The learner; it only answers.
        asking: Answers, with what waits to be learned.
        pending: How many facts that are.

    Attributes:
        version: Number of the version.
    """

    def __init__(self, learner: Learner, asking: Asking, pending: int = 0) -> None:
        self.learner, self.asking, self.pending = learner, asking, pending
        self.version = learner.version
        self.users = 0

    @cached_property
    def kept(self) -> dict[str, Any]:
        """Whatever is made once for a snapshot, by a name of the maker's choice."""
        return {}


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
        self._current = self._made(self._loaded())

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

    def renew(self) -> None:
        """Take in what is new, then let questions go there.

        Raises:
            DataError: The run is damaged; questions are answered as before.
        """
        resting = self._rested()
        resting.refresh()
        snapshot = self._made(resting)
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

    def _loaded(self) -> Learner:
        learner = Learner.load(self._folder.path, device=self._device)
        learner.check_learned()
        return learner

    @staticmethod
    def _made(learner: Learner) -> Snapshot:
        asking = learner.ask
        learner.trainer.model.eval()  # several threads ask at a time
        asking.examined()  # what probabilities are made with; an old version may lack it
        return Snapshot(learner, asking)
