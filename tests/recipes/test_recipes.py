from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest
import torch

from dicgrl import DataError, UserError
from dicgrl.models import Components, KnowledgeModel, NetworkModel, Scorer
from dicgrl.models.division import DivisionSettings, VectorSettings
from dicgrl.recipes import default_settings, load_recipe
from dicgrl.settings import Settings
from dicgrl.strategies import strategy_named
from dicgrl.strategies.budget import examples_within
from dicgrl.trainers import LinkTrainer

FILES = sorted(
    f.name
    for f in files("dicgrl.recipes").iterdir()
    if f.name.endswith(".toml") and not f.name.startswith("default.")
)


def division(settings: Settings) -> Components | None:
    return settings.of(DivisionSettings).division()


@pytest.mark.parametrize("disentangled", [False, True], ids=["plain", "disentangled"])
@pytest.mark.parametrize("file", FILES)
def test_every_recipe_makes_a_model(file: str, disentangled: bool) -> None:
    dataset, model, name = file.removesuffix(".toml").rsplit(".", 2)
    recipe = load_recipe(name, dataset, model, disentangled=disentangled)
    assert recipe.name == name
    settings = recipe.settings
    assert settings.model == model
    assert (division(settings) is not None) == disentangled
    if model in Scorer.registry:
        options = settings.of(Scorer.registry[model].Settings).as_dict()
        vectors = settings.of(VectorSettings)
        KnowledgeModel(model, vectors.length, division(settings), options).grow(2, 1)
    else:
        NetworkModel(model, 4, components=division(settings)).grow(2)
    assert all(isinstance(v, int | float) for v in recipe.published.values())
    assert all(0 <= v <= 100 for v in recipe.published.values())
    if name == "paper" and disentangled:
        assert settings.routing == "published"


# The strategy (none: all parts merged), and how many components of what size a triple uses.
VECTORS: dict[str, dict[str | None, tuple[int, int, int]]] = {
    "films.transe.best": {None: (3, 4, 22), "dicgrl": (3, 4, 22)},
    "films.rotate.best": {None: (3, 4, 44), "dicgrl": (3, 4, 44)},
    "films.complex.best": {None: (3, 4, 44), "dicgrl": (3, 4, 44)},
    "films.distmult.best": {None: (3, 4, 44), "dicgrl": (3, 4, 44)},
    "wn18rr.rotate.best": {None: (3, 4, 136), "dicgrl": (3, 4, 136)},
    "fb15k-237.complex.best": {None: (3, 4, 136), "dicgrl": (3, 4, 136)},
    "fb15k-237.transe.best": {None: (3, 4, 136), "dicgrl": (20, 32, 40)},
    "fb15k-237.convkb.best": {None: (3, 4, 67), "dicgrl": (6, 8, 34)},
    "wn18rr.transe.best": {None: (3, 4, 136), "dicgrl": (5, 8, 80)},
    "wn18rr.convkb.best": {None: (3, 4, 133), "dicgrl": (3, 4, 133)},
    # The paper's d, the length of a whole vector, is 200.
    "fb15k-237.transe.paper": {None: (4, 8, 25), "dicgrl": (4, 8, 25)},
    "fb15k-237.transe.released": {None: (4, 8, 25), "dicgrl": (4, 8, 25)},
    "fb15k-237.convkb.paper": {None: (4, 8, 25), "dicgrl": (4, 8, 25)},
    "fb15k-237.convkb.released": {None: (4, 8, 25), "dicgrl": (4, 8, 25)},
    "wn18rr.transe.paper": {None: (2, 4, 50), "dicgrl": (2, 4, 50)},
    "wn18rr.transe.released": {None: (2, 4, 50), "dicgrl": (2, 4, 50)},
    "wn18rr.convkb.paper": {None: (2, 4, 50), "dicgrl": (2, 4, 50)},
    **{
        f"{name}.transe.published": {None: (3, 4, 68), "dicgrl": (3, 4, 68)}
        for name in ("entity", "relation", "fact", "hybrid")
    },
    "fb15k-237.complex.published": {None: (3, 4, 668), "dicgrl": (3, 4, 668)},
    "wn18rr.complex.published": {None: (3, 4, 336), "dicgrl": (3, 4, 336)},
    "wn18rr.convkb.released": {None: (2, 4, 50), "dicgrl": (2, 4, 50)},
    "a stranger's.transe.best": {None: (3, 4, 68), "dicgrl": (3, 4, 68), "fresh": (3, 4, 68)},
}


@pytest.mark.parametrize("recipe", VECTORS)
def test_divided_vectors_are_those_that_results_were_measured_with(recipe: str) -> None:
    dataset, model, name = recipe.rsplit(".", 2)
    for strategy, (top, count, size) in VECTORS[recipe].items():
        found = load_recipe(name, dataset, model, disentangled=True, strategy=strategy)
        trainer = LinkTrainer(found.settings, 0, torch.device("cpu"))
        trainer.model.grow(1, 1)
        assert trainer.model.entities.rows.shape == (count, size)
        assert trainer.model.active == top * size
        assert 0 <= top * size - found.settings.dim < 4 * top  # rounded up to whole components


def test_every_recipe_of_vectors_is_among_them() -> None:
    of_vectors = {f.removesuffix(".toml") for f in FILES if f.split(".")[-3] in Scorer.registry}
    assert of_vectors < VECTORS.keys()


def test_the_case_of_a_dataset_does_not_count() -> None:
    for file in FILES:
        dataset, model, name = file.removesuffix(".toml").rsplit(".", 2)
        assert load_recipe(name, dataset.upper(), model) == load_recipe(name, dataset, model)


def test_a_graph_without_a_recipe_gets_the_defaults() -> None:
    plain = load_recipe("best", "my-own-graph", "convkb")
    assert (plain.name, plain.settings.model) == ("default", "convkb")
    assert division(plain.settings) is None and plain.settings.strategy == "fresh"
    assert plain.published == {}
    divided = load_recipe("best", "my-own-graph", "transe", disentangled=True)
    assert division(divided.settings) is not None
    assert divided.settings.routing == "learned" and divided.settings.strategy == "fresh"


def test_learners_are_bounded_unless_asked_otherwise() -> None:
    links, nodes = (default_settings(model, "dicgrl") for model in ("transe", "gat"))
    assert all(each.start in ("auto", "neighbours") for each in (links, nodes))
    assert strategy_named("dicgrl").starts_from_neighbours and links.arrive_epochs > 0
    shares = [examples_within(text, 1000, 10) for text in (links.shield, links.budget)]
    assert all(shares) and sum(shares) <= 100  # a tenth of the history
    assert nodes.later_epochs > 0
    assert examples_within(nodes.shield, 1000, 10) == 1000  # no labels: the pass is of all anyway
    assert 0 < examples_within(nodes.budget, 1000, 10) <= 100
    assert "arrive_epochs" not in default_settings("transe", "lower")


def test_a_recipe_without_a_word_about_strategies_has_those_of_the_default(tmp_path: Path) -> None:
    usual = default_settings("sage", "dicgrl")
    shipped = default_settings("sage", "dicgrl", dataset="cora")
    assert shipped.epochs != usual.epochs  # it is Cora's own
    later = {key: value for key, value in shipped.as_dict().items() if key in usual.later_names}
    assert later == {key: usual.as_dict()[key] for key in later}
    (tmp_path / "mine.toml").write_text("[settings]\nepochs = 7", encoding="utf-8")
    mine = load_recipe(str(tmp_path / "mine.toml"), "cora", "sage", strategy="dicgrl").settings
    assert (mine.epochs, mine.shield) == (7, "0")  # a file means what it says


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[setting]\ndim = 16", r"mine.toml: unknown section 'setting'; did you mean 'settings'"),
        ("settings = 3", "mine.toml: settings: expected a table"),
        ("strategies = 3", "mine.toml: strategies: expected a table"),
        ("[strategies]\ndicgrl = 3", "mine.toml: strategies: expected a table"),
    ],
)
def test_a_file_that_would_be_ignored_in_part_is_refused(
    text: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        load_recipe(str(tmp_path / "mine.toml"), "my-own-graph", "transe", strategy="dicgrl")


def test_what_does_not_exist_is_refused() -> None:
    with pytest.raises(UserError, match="no recipe 'paper' for my-own-graph with transe"):
        load_recipe("paper", "my-own-graph", "transe")
    with pytest.raises(UserError, match=r"unknown recipe 'fastest'.*best, paper"):
        load_recipe("fastest", "films", "transe")
    with pytest.raises(UserError, match="did you mean 'transe'"):
        load_recipe("best", "my-own-graph", "trense")
    with pytest.raises(UserError, match="did you mean 'gat'"):
        load_recipe("best", "my-own-graph", "gaat")
