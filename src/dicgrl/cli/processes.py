"""`torchrun ... -m dicgrl run`: several processes are one command.

The first prints, writes and commits; the others are quiet. Whichever fails first says why, and all
end.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from dicgrl.errors import UserError

TOGETHER = ("run", "learn")  # what several processes can do
_STDERR: list[TextIO] = []  # of a process that is quiet
_MISTAKE = 2  # how a command ends that was not understood
_GONE = ("Connection closed by peer", "Connection reset", "Connection refused", "Timed out")


def are_several() -> bool:
    """Whether this is one of several processes."""
    return os.environ.get("WORLD_SIZE", "1") not in ("", "1")


def restarted() -> bool:
    """Whether `torchrun` has started these processes again after one of them had died."""
    return are_several() and os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0"


@contextmanager
def as_one() -> Iterator[None]:
    """Meet the other processes, if there are any, and do what follows with them."""
    if not are_several():
        yield
        return
    from dicgrl.parallel.group import do_not_try_again, environment, together

    if environment()[0]:
        _STDERR[:] = [sys.stderr]
        sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - until it ends
    with together() as group:
        try:
            yield
        except UserError:
            do_not_try_again()
            raise
        except SystemExit as ended:
            if ended.code == _MISTAKE:
                do_not_try_again()
            elif group is not None and not ended.code:
                group.wait()  # nobody leaves while another still needs it
            raise


def check_command(name: str | None) -> None:
    """Refuse what is not for several processes.

    Raises:
        UserError: It is not.
    """
    if are_several() and name not in TOGETHER:
        raise UserError(
            f"{name or 'dicgrl'}: one process does this; torchrun is for {' and '.join(TOGETHER)}"
        )


def refuse(what: str, instead: str) -> None:
    """Refuse an option that is not for several processes.

    Raises:
        UserError: There are several.
    """
    if are_several():
        raise UserError(f"{what}: not with several processes; {instead}")


def may_complain() -> bool:
    """Whether this process is to say why it ends: of several, the first that fails."""
    if not are_several():
        return True
    from dicgrl.parallel.group import fails_first

    if not fails_first():
        return False
    if _STDERR:
        sys.stderr = _STDERR[0]
    return True


def what_is_lost(error: Exception) -> str | None:
    """The message about an error that only says that another process is not there any more."""
    if are_several() and any(words in str(error) for words in _GONE):
        return "another of these processes has ended; finished parts are kept; --resume continues"
    return None


def writes() -> bool:
    """Whether this process writes what belongs to a run besides the store: it is the first."""
    return not are_several() or os.environ.get("RANK", "0") == "0"
