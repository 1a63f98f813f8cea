from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
from pathlib import Path
from runpy import run_path

import pytest

import dicgrl
from dicgrl.kernels import _FOUND
from dicgrl.settings import LinkSettings, NodeSettings

MODULES = [
    "dicgrl",
    *(
        module.name
        for module in pkgutil.walk_packages(dicgrl.__path__, "dicgrl.")
        if not module.name.endswith("__main__")
        and not (module.name.startswith("dicgrl.kernels.") and not _FOUND)  # they need Triton
    ),
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings_run(name: str) -> None:
    results = doctest.testmod(
        importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert results.failed == 0


def test_examples_of_the_readme_run() -> None:
    readme = Path(__file__).resolve().parents[1] / "README.md"
    results = doctest.testfile(str(readme), module_relative=False, encoding="utf-8")
    assert results.attempted > 5
    assert results.failed == 0


def test_the_page_of_settings_is_written_from_them() -> None:
    root = Path(__file__).resolve().parents[1]
    script = run_path(str(root / "scripts" / "settings_page.py"))
    page = (root / "docs" / "settings.md").read_text(encoding="utf-8")
    assert page == script["page"](), "run python scripts/settings_page.py"
    for settings in (LinkSettings(), NodeSettings()):
        assert all(f"`{name}`" in page for name in settings.names())


@pytest.mark.parametrize("name", MODULES)
def test_modules_say_what_they_are(name: str) -> None:
    assert (importlib.import_module(name).__doc__ or "").strip()


@pytest.mark.parametrize(
    "name",  # the others, such as Stream, are unions of types
    [n for n in dicgrl.__all__ if inspect.isroutine(x := getattr(dicgrl, n)) or inspect.isclass(x)],
)
def test_public_names_are_documented(name: str) -> None:
    thing = getattr(dicgrl, name)
    assert (thing.__doc__ or "").strip()
    own = vars(thing).items() if inspect.isclass(thing) else ()
    for title, member in own:
        if title.startswith("_"):
            continue
        inner = member.fget if isinstance(member, property) else member
        inner = getattr(inner, "__func__", inner)  # class methods
        if inspect.isfunction(inner):
            assert (inner.__doc__ or "").strip(), f"{name}.{title}"


def test_examples_are_found_at_all() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    assert sum(len(test.examples) for test in finder.find(dicgrl.Vocabulary)) > 3
