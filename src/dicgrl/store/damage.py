"""What counts as damage of a run: what its files contain, never what this machine lacks."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dicgrl.common.memory import is_shortage
from dicgrl.errors import BusyError, DataError, SetupError, UserError

#: What is raised where each file is intact, but together they make no learner.
_UNFIT = (AttributeError, IndexError, KeyError, RuntimeError, TypeError, UserError, ValueError)
#: Errors of a system that refuses, or has no more of, what reading a file takes.
_LACKING = {errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EDQUOT}


def is_no_damage(error: BaseException) -> bool:
    """Whether an error says nothing of the files that were being read.

    Example:
        >>> is_no_damage(SetupError("Parquet needs pyarrow")), is_no_damage(KeyError("model"))
        (True, False)
    """
    if isinstance(error, OSError) and error.errno in _LACKING:
        return True
    return isinstance(error, SetupError | BusyError) or is_shortage(error)


@contextmanager
def rebuilding(folder: Path) -> Iterator[None]:
    """Report as damage what fails while a learner is rebuilt from files that are each intact.

    Args:
        folder: The folder of the run.

    Raises:
        DataError: They do not fit together.
    """
    try:
        yield
    except _UNFIT as error:
        if is_no_damage(error):
            raise
        raise damaged_run(folder, error) from error


def damaged_run(path: Path, what: object) -> DataError:
    """The error for a run whose files do not say what they should."""
    return DataError(path, f"damaged run ({what})")
