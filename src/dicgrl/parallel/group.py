"""The processes that learn one model together, and their communication.

`torchrun` starts them and tells each its rank through the environment. PyTorch's
`torch.distributed` transports what they exchange, by gloo between CPUs and by NCCL between GPUs.
All of them run the same program with the same seeds, so that they make the same exchanges in the
same order.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from math import prod

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from dicgrl.errors import UserError

RESTARTS = "TORCHELASTIC_RESTART_COUNT"  # how often torchrun has restarted these processes
TIMEOUT = timedelta(minutes=30)  # ranks may wait this long while rank 0 writes

_current: Group | None = None
_store: Store | None = None  # where the processes meet
_torchrun: Store | None = None  # the same without what is only of this attempt
_MISTAKE = "dicgrl mistake"


@dataclass(frozen=True)
class Group:
    """The processes of a run, as one of them sees them.

    Attributes:
        rank: Number of this process, from 0.
        size: Number of processes.
        on_gpus: Whether each has a GPU of its own.
        sent: Bytes that this process has sent to others, by kind of content.
    """

    rank: int
    size: int
    on_gpus: bool = False
    sent: Counter[str] = field(default_factory=Counter)

    def exchange(self, rows: Tensor, to: list[int], back: list[int], what: str) -> Tensor:
        """Send rows to each rank and receive rows from each, in the order of the ranks.

        Args:
            rows: The rows to send, [sum(to), ...].
            to: How many go to each rank.
            back: How many come from each rank.
            what: Kind of content, for `sent`.
        """
        rows = rows.contiguous()
        received = rows.new_empty(sum(back), *rows.shape[1:])
        self.sent[what] += (len(rows) - to[self.rank]) * rows[:1].nbytes if len(rows) else 0
        # Not every backend supports every type of number, but all support bytes.
        dist.all_to_all_single(_bytes(received), _bytes(rows), back, to)
        return received

    def counts(self, to: list[int], device: torch.device) -> list[int]:
        """How many rows each rank will send here, given how many go to each."""
        told = torch.tensor(to, device=device)
        heard = torch.empty_like(told)
        dist.all_to_all_single(heard, told)
        self.sent["counts"] += (self.size - 1) * told[:1].nbytes
        found: list[int] = heard.tolist()
        return found

    def add(self, values: Tensor, what: str = "sums") -> Tensor:
        """Sum of the values of all ranks, in place; bit for bit the same on each."""
        # A ring sends each number to a neighbour twice, except for its own share.
        self.sent[what] += 2 * values.nbytes * (self.size - 1) // self.size
        dist.all_reduce(values)
        return values

    def largest(self, values: Tensor) -> Tensor:
        """Element-wise maximum over all ranks, in place."""
        dist.all_reduce(values, dist.ReduceOp.MAX)
        return values

    def told(self, values: Tensor) -> Tensor:
        """Replace the values by those of rank 0."""
        dist.broadcast(values, 0)
        return values

    def gathered(self, rows: Tensor, what: str) -> list[Tensor]:
        """The tensors of all ranks, which must have the same shape."""
        self.sent[what] += (self.size - 1) * rows.nbytes
        found = [torch.empty_like(rows) for _ in range(self.size)]
        dist.all_gather(found, rows.contiguous())
        return found

    def hand_in(self, rows: Tensor, lengths: list[int]) -> Iterator[tuple[int, Tensor]]:
        """On rank 0, iterate over the rows of each rank; other ranks only send theirs.

        Args:
            rows: Rows of this rank.
            lengths: Number of rows of each rank.
        """
        if self.rank:
            if len(rows):
                dist.send(_bytes(rows.contiguous()), 0)
            return
        yield 0, rows
        for rank in range(1, self.size):
            received = rows.new_empty(lengths[rank], *rows.shape[1:])
            if len(received):
                dist.recv(_bytes(received), rank)
            yield rank, received

    def wait(self) -> None:
        """Wait until all ranks have reached this point."""
        dist.barrier()


def current() -> Group | None:
    """The group of this process; None if it learns alone."""
    return _current


def speaks() -> bool:
    """Whether this process prints and writes, as it is alone or the first of several."""
    return _current is None or _current.rank == 0


def environment() -> tuple[int, int]:
    """Rank and number of processes, as set by `torchrun`; 0 and 1 without it."""
    try:
        return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    except ValueError:
        raise UserError("RANK and WORLD_SIZE: expected numbers, as torchrun sets them") from None


def fails_first() -> bool:
    """Whether this is the first process to call this, or others cannot be reached any more."""
    if _store is None:
        return environment()[0] == 0
    try:
        return bool(_store.add("failed", 1) == 1)
    except RuntimeError:
        return True


def do_not_try_again() -> None:
    """Let processes that `torchrun` starts again end at once: what is wrong will be wrong then.

    They would go on with what they find, even with what this attempt has refused to touch.
    """
    if _torchrun is not None:
        with suppress(RuntimeError):  # where the first process keeps the store, and has ended
            _torchrun.set(_MISTAKE, "1")


def _is_useless() -> bool:
    """Whether these processes were started again after a mistake."""
    again = os.environ.get(RESTARTS, "0") != "0"
    return again and _torchrun is not None and _torchrun.check([_MISTAKE])


@contextmanager
def together(timeout: timedelta = TIMEOUT) -> Iterator[Group | None]:
    """Join the processes that `torchrun` started; None if it did not start several.

    Args:
        timeout: How long a process waits for another before it gives up.

    Raises:
        UserError: The environment does not say how to reach the others.
        SystemExit: An earlier attempt has ended with a mistake, and has said so.
    """
    global _current, _store, _torchrun
    rank, size = environment()
    if size <= 1:
        yield None
        return
    try:
        meeting, _, _ = next(rendezvous("env://", rank, size, timeout=timeout))
    except ValueError as error:
        raise UserError(
            f"{size} processes cannot find each other ({error}); use torchrun"
        ) from None
    _torchrun = meeting
    while isinstance(_torchrun, PrefixStore):
        _torchrun = _torchrun.underlying_store
    if _is_useless():
        raise SystemExit(2)
    # Restarted processes use the same store, where dead ones have left their addresses.
    _store = PrefixStore(f"attempt {os.environ.get(RESTARTS, '0')}", meeting)
    backend, store = _backend(), PrefixStore("group", _store)
    dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=timeout)
    _current = Group(rank, size, on_gpus="nccl" in backend)
    try:
        yield _current
    finally:
        _current = None
        with suppress(RuntimeError):  # other processes may have ended already
            dist.destroy_process_group()


def _backend() -> str:
    """Gloo between CPUs, and in addition NCCL if each process has a GPU of its own."""
    local = int(os.environ.get("LOCAL_RANK", "0"))
    gpus = torch.cuda.device_count()
    if gpus and dist.is_nccl_available() and int(os.environ.get("LOCAL_WORLD_SIZE", "1")) <= gpus:
        torch.cuda.set_device(local)
        return "cpu:gloo,cuda:nccl"
    return "gloo"


def _bytes(rows: Tensor) -> Tensor:
    """View rows as bytes."""
    return rows.view(len(rows), prod(rows.shape[1:])).view(torch.uint8)
