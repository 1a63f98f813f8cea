"""Questions that come at the same time are answered together, without waiting for any.

One thread answers. What comes while it is at work it takes all at once when it has done: where
nobody else asks, a question is answered right away; where many do, each costs a fraction.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import SimpleQueue

from dicgrl.serve.answering import Asked, answered
from dicgrl.serve.snapshots import Snapshots

_MOST = 64  # questions that are answered together


@dataclass(slots=True)
class _Job:
    asked: Asked
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[bytes]


class Batches:
    """Answers small requests.

    Args:
        snapshots: What they are answered from.
        on_batch: Told how many questions were answered together.
    """

    def __init__(self, snapshots: Snapshots, on_batch: Callable[[int], None]) -> None:
        self._snapshots, self._on_batch = snapshots, on_batch
        self._waiting: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="answer", daemon=True)
        self._thread.start()

    @staticmethod
    def takes(asked: Asked) -> bool:
        """Whether a request is small enough not to hold up others."""
        return len(asked.questions) <= _MOST // 2

    async def answered(self, asked: Asked) -> bytes:
        """The answer to a request, as JSON.

        Raises:
            ProblemError: It asks for something that there is not.
        """
        loop = asyncio.get_running_loop()
        job = _Job(asked, loop, loop.create_future())
        self._waiting.put(job)
        return await job.done

    def stop(self) -> None:
        """Let the thread end."""
        self._waiting.put(None)

    def _work(self) -> None:
        left: _Job | None = None
        while True:
            job = left or self._waiting.get()
            if job is None:
                return
            jobs, left = self._taken(job)
            jobs = [each for each in jobs if not each.done.cancelled()]
            if jobs:
                self._answer(jobs)
                self._on_batch(sum(len(each.asked.questions) for each in jobs))

    def _taken(self, job: _Job) -> tuple[list[_Job], _Job | None]:
        """A request with those that wait behind it, and one that did not fit any more."""
        jobs, questions = [job], len(job.asked.questions)
        while not self._waiting.empty():
            more = self._waiting.get()
            if more is None:
                self._waiting.put(None)  # after these
                break
            questions += len(more.asked.questions)
            if questions > _MOST:
                return jobs, more
            jobs.append(more)
        return jobs, None

    def _answer(self, jobs: Sequence[_Job]) -> None:
        try:
            with self._snapshots.pinned() as snapshot:
                found = answered(snapshot, [job.asked for job in jobs])
        except Exception as error:  # of the model: all of them hear of it
            found = [error] * len(jobs)
        for loop in {job.loop for job in jobs}:
            mine = [each for each in zip(jobs, found, strict=True) if each[0].loop is loop]
            loop.call_soon_threadsafe(_deliver, mine)


def _deliver(found: Sequence[tuple[_Job, bytes | Exception]]) -> None:
    for job, answer in found:
        if job.done.done():
            continue
        if isinstance(answer, Exception):
            job.done.set_exception(answer)
        else:
            job.done.set_result(answer)
