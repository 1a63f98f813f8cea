"""Libraries that only some uses need: imported then, and named in a message where missing."""

from __future__ import annotations

import importlib
from types import ModuleType

from dicgrl.errors import SetupError


def needed(module: str, extra: str, what: str) -> ModuleType:
    """A module of a library that an extra of this package installs.

    Args:
        module: Its name.
        extra: The extra.
        what: What needs it, as the message says it.

    Raises:
        SetupError: It is not installed.

    Example:
        >>> needed("json", "arrow", "Parquet").dumps([1])
        '[1]'
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise SetupError(f"{what} needs {package}: pip install 'dicgrl[{extra}]'") from error
