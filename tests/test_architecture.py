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
from dicgrl.settings import Settings
from dicgrl.tasks import Task
from dicgrl.training import DivergedError

ROOT = Path(dicgrl.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))
# The rooms of the house from the ground up: each imports only from those before it.
ROOMS = (
    "errors",
    "common",
    "graph",
    "readers",
    "datasets",
    "interop",
    "kernels",
    "models",
    "training",
    "evaluation",
    "trainers",
    "parallel",
    "strategies",
    "maps",
    "ask",
    "tasks",
    "settings",
    "recipes",
    "store",
    "intake",
    "relabel",
    "lifecycle",
    "saving",
    "learner",
    "jobs",
    "report",
    "nights",
    "research",
    "folder",
    "serve",
    "cli",
    "__main__",
)
TOP = {"cli", "__main__"}
LONGEST = 400  # lines of a file


def unit(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


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
        used = {name.split(".")[1] for name in imports(path) if "." in name}
        graph.setdefault(unit(path), set()).update(used - {unit(path)})
    return graph


def test_every_room_is_on_the_plan() -> None:
    assert {unit(path) for path in MODULES} - {"__init__"} == set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_from_rooms_below(room: str) -> None:
    assert needs()[room] <= set(ROOMS[: ROOMS.index(room)])


def test_no_file_is_too_long() -> None:
    long = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in MODULES}
    assert not {name: lines for name, lines in long.items() if lines > LONGEST}


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
    names = "BusyError", "DivergedError", "Explanation", "Settings", "Task", "run"
    assert {*names, "Learner", "UnknownLabelError"} < set(dicgrl.__all__)
    assert dicgrl.DivergedError is DivergedError and dicgrl.Explanation is Explanation
    assert (dicgrl.Settings, dicgrl.Task) == (Settings, Task)
    assert all(hasattr(dicgrl, name) for name in dicgrl.__all__)
    assert not hasattr(dicgrl, "nonsense")
