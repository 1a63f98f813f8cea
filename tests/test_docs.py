from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
import shlex
from collections import Counter
from pathlib import Path
from runpy import run_path

import pytest
import typer

import dicgrl
from dicgrl.cli import app
from dicgrl.kernels import _FOUND
from dicgrl.models import BACKBONES, Scorer
from dicgrl.settings import Settings
from dicgrl.strategies import Strategy

MODULES = [
    "dicgrl",
    *(
        module.name
        for module in pkgutil.walk_packages(dicgrl.__path__, "dicgrl.")
        if not module.name.endswith("__main__")
        and not (module.name.startswith("dicgrl.kernels.") and not _FOUND)  # they need Triton
    ),
]


ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "archive").glob("*.md")),
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for base in (Scorer, Strategy):  # what an example defines is known to no other test
        monkeypatch.setattr(base, "registry", dict(base.registry))
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
    for settings in (Settings("transe"), Settings("gat")):
        assert all(f"`{name}`" in page for name in settings.names())
        assert all(known.help in page for known in settings.known_somewhere().values())


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
        if inspect.isfunction(inner):  # an override may leave it to what it overrides
            assert (inspect.getdoc(getattr(thing, title)) or "").strip(), f"{name}.{title}"


def test_the_learner_names_every_strategy_and_model_of_the_package() -> None:
    text = inspect.getdoc(dicgrl.Learner) or ""
    kinds = [*Strategy.registry.items(), *Scorer.registry.items()]  # other tests add some
    names = [name for name, kind in kinds if kind.__module__.startswith("dicgrl.")]
    assert "arrival" in names and "transe" in names
    assert [n for n in (*names, *BACKBONES) if not re.search(rf"\b{n}\b", text)] == []


def test_examples_are_found_at_all() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    assert sum(len(test.examples) for test in finder.find(dicgrl.Vocabulary)) > 3


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    slugs = [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]
    seen: Counter[str] = Counter()
    found = set()
    for slug in slugs:
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    links = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "`", text))
    for link in links:
        if link.startswith(("https://", "http://")):
            continue
        place, _, anchor = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_pages_that_files_name_exist() -> None:
    named = re.compile(r"docs/[\w/-]+\.md")
    files = [p for end in ("py", "toml") for p in (ROOT / "src").rglob(f"*.{end}")]
    for path in [*files, *PAGES, ROOT / "CHANGELOG.md"]:
        for name in named.findall(path.read_text(encoding="utf-8")):
            assert (ROOT / name).is_file(), (path, name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_pages_name_exist(page: Path) -> None:
    """`models/table.py` is a file of the package, `benchmarks/folds.py` one of the repository."""
    text = page.read_text(encoding="utf-8")
    names = re.findall(r"(?:(?<=`)|(?<=python ))((?:\w+/)+\w+\.py)\b", text)
    missing = [
        name
        for name in names
        if not (ROOT / name).is_file() and not (ROOT / "src" / "dicgrl" / name).is_file()
    ]
    assert not missing


@pytest.mark.parametrize("name", ["README.md", "docs/commands.md"])
def test_commands_of_a_page_have_these_options(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    blocks = "\n".join(re.split(r"^```.*$", text, flags=re.MULTILINE)[1::2])
    lines = re.findall(r"^dicgrl (.+)$", blocks, re.MULTILINE)
    assert len(lines) >= 5
    used = set()
    for line in lines:
        words = shlex.split(line, comments=True)
        if words[0] == "--plugin":
            words = words[2:]
        command = typer.main.get_command(app)
        while words and words[0] in (inner := getattr(command, "commands", {})):
            used.add(words[0])
            command = inner[words.pop(0)]
        known = {o for p in command.params for o in (*p.opts, *p.secondary_opts)}
        assert {w for w in words if w.startswith("-") and w != "-"} <= known, line
    if name.endswith("commands.md"):  # it has them all
        group = typer.main.get_command(app)
        commands = getattr(group, "commands", {})
        every = {name for name, command in commands.items() if not command.hidden}
        every |= set(getattr(getattr(group, "commands", {})["datasets"], "commands", {}))
        assert used == every
