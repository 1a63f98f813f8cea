"""Scoring functions and strategies of one's own on the command line: `dicgrl --plugin FILE.py`."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from dicgrl.errors import UserError


def load_plugin(path: Path) -> None:
    """Run a Python file; scorers and strategies that it defines are known by their names then.

    Args:
        path: The file; see `examples/pairre.py` and `examples/newcomers.py`.

    Raises:
        UserError: There is no such file, or it fails.
    """
    if path.suffix != ".py" or not path.is_file():
        raise UserError(f"--plugin {path}: no such Python file")
    name = f"dicgrl_plugin_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses look for it
    try:
        spec.loader.exec_module(module)
    except UserError as error:
        raise UserError(f"--plugin {path}: {error}") from error
    except Exception as error:
        raise UserError(f"--plugin {path}: {type(error).__name__}: {error}") from error
