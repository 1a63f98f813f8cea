"""Data flows one way: nothing below imports from above."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import dicgrl
from dicgrl.ask.explain import Explanation
from dicgrl.settings import LinkSettings, NodeSettings
from dicgrl.training import DivergedError

ROOT = Path(dicgrl.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))
# From the ground up; a unit (a module or sub-package of dicgrl) imports only from lower layers.
GROUND = [{"errors"}, {"files", "locks"}, {"graph"}, {"readers"}, {"datasets", "interop"}]
TOP = {"cli", "__main__"}
# Units that are one thing in two files: a learner saves itself, its folder gives a learner.
ONE_THING = {"storage": "learner"}


def unit(path: Path) -> str:
    return unit_of(path.relative_to(ROOT).parts[0].removesuffix(".py"))


def unit_of(name: str) -> str:
    return ONE_THING.get(name, name)


def name_of(path: Path) -> str:
    parts = ("dicgrl", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imports(path: Path, *, lazy: bool = True) -> list[str]:
    """Modules of dicgrl that a file imports; with `lazy`, also those inside functions."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inside = {
        node
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
    }
    names: list[str] = []
    for node in ast.walk(tree):
        if not lazy and node in inside:
            continue
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            module = node.module or ""
            # `from package import name`: the name may be a module of its own.
            found = [
                full
                if (ROOT.parent / full.replace(".", "/")).with_suffix(".py").is_file()
                else module
                for full in (f"{module}.{alias.name}" for alias in node.names)
            ]
        else:
            continue
        names += [name for name in found if name.split(".")[0] == "dicgrl"]
    return names


@cache
def needs() -> dict[str, set[str]]:
    """Which units each unit imports, functions included."""
    graph: dict[str, set[str]] = {}
    for path in MODULES:
        if unit(path) == "__init__":
            continue
        used = {unit_of(name.split(".")[1]) for name in imports(path) if "." in name}
        graph.setdefault(unit(path), set()).update(used - {unit(path)})
    return graph


def test_units_form_no_cycle() -> None:
    try:
        list(TopologicalSorter(needs()).static_order())
    except CycleError as error:
        pytest.fail(f"cycle: {' -> '.join(error.args[1])}")


def test_modules_form_no_cycle_when_imported() -> None:
    packages = {path.parent for path in MODULES if path.name == "__init__.py"}
    graph = {}
    for path in MODULES:
        if path.parent in packages and path.name == "__init__.py":
            continue  # a package re-exports what is inside it
        graph[name_of(path)] = set(imports(path, lazy=False)) - {"dicgrl"}
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"cycle: {' -> '.join(error.args[1])}")


@pytest.mark.parametrize("level", range(len(GROUND)))
def test_layers(level: int) -> None:
    below = set().union(*GROUND[:level])
    for name in GROUND[level]:
        assert needs()[name] <= below


def test_nothing_imports_the_command_line() -> None:
    for name, used in needs().items():
        assert name in TOP or not used & TOP, name


def test_only_the_command_line_imports_the_package_as_a_whole() -> None:
    for path in MODULES:
        if unit(path) not in TOP | {"__init__"}:
            assert "dicgrl" not in set(imports(path)), path


def test_import_is_light() -> None:
    code = "import sys, dicgrl; print(*{name.split('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    loaded = set(done.stdout.split())
    assert "dicgrl" in loaded
    assert not loaded & {"torch", "torch_geometric", "pykeen", "pandas", "scipy", "typer", "rich"}


def test_names_of_the_package_are_those_of_their_modules() -> None:
    assert dicgrl.__all__ == sorted(dicgrl.__all__)
    names = "BusyError", "DivergedError", "Explanation", "LinkSettings", "NodeSettings"
    assert {*names, "Learner", "UnknownLabelError"} < set(dicgrl.__all__)
    assert dicgrl.DivergedError is DivergedError and dicgrl.Explanation is Explanation
    assert (dicgrl.LinkSettings, dicgrl.NodeSettings) == (LinkSettings, NodeSettings)
    assert all(hasattr(dicgrl, name) for name in dicgrl.__all__)
    assert not hasattr(dicgrl, "nonsense")
