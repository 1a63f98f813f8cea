"""A strategy with settings of its own is known wherever settings are: nothing else is edited."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from dicgrl import Learner, UserError
from dicgrl.cli import main
from dicgrl.common.options import option
from dicgrl.recipes import load_recipe
from dicgrl.settings import Form, Settings, check_use, strategies_using
from dicgrl.strategies import Composed, Learned, Strategy
from dicgrl.strategies.base import LaterSettings
from dicgrl.strategies.ewc import Penalty
from dicgrl.strategies.ingredients import Replay
from dicgrl.tasks import task_of_model
from dicgrl.trainers import Trainer
from dicgrl.training import TrainingSet
from dicgrl.training.loop import Monitor
from tests.tiny import learner_of, ring, taught, write_ring

MINE, BOTH = "mine-of-the-tests", "both-of-the-tests"
SMALL = ("--set", "dim=8", "--set", "epochs=2", "--set", "batch=16", "--device", "cpu")


class Mine(Strategy):
    """Learns only a share of the new examples."""

    @dataclass(frozen=True)
    class Settings(LaterSettings):
        """Settings of the strategy of the tests."""

        portion: float = option(0.5, "Share of the new examples.", above=0, most=1)

    def later(self, trainer: Trainer, monitor: Monitor | None) -> Learned:
        examples = trainer.examples("train", trainer.newest)
        kept = examples[: max(1, round(self.settings.portion * len(examples)))]
        report = self.fit(trainer, TrainingSet(trainer.objective(kept), kept), monitor)
        return Learned([report], details={"kept": len(kept)})


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Strategy, "registry", dict(Strategy.registry))

    class Named(Mine, name=MINE):
        pass

    class Both(Composed, name=BOTH):
        """Replays, and holds back what mattered."""

        ingredients = (Replay, Penalty)


def called(*words: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("sys.argv", ["dicgrl", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def kept(learner: Learner) -> list[int]:
    return [report.details["kept"] for report in learner.reports[1:]]


@pytest.mark.parametrize("model", ["transe", "gat"])
def test_texts_and_values_are_read_by_its_section(model: str) -> None:
    settings = Settings(model, MINE)
    assert settings.portion == 0.5 and settings.of(Mine.Settings).later_epochs == 0
    assert settings.parsed(["portion=1"]).as_dict()["portion"] == 1.0
    assert Settings(model).parsed([f"strategy={MINE}", "portion=0.25"]).portion == 0.25
    with pytest.raises(UserError, match=r"^portion=2\.0: expected a number above 0 and at most 1"):
        settings.parsed(["portion=2"])
    with pytest.raises(UserError, match=r"^portion='much': expected a number"):
        settings.parsed(["portion=much"])
    with pytest.raises(UserError, match=r"^unknown setting 'potion'; did you mean 'portion'"):
        settings.parsed(["potion=1"])
    assert "portion" in settings.names() and "portion" in settings.later_names


def test_the_learner_takes_it() -> None:
    small, large = (taught(learner_of("links", MINE, portion=share)) for share in (0.25, 1.0))
    new = [report.new_examples for report in large.reports[1:]]
    assert kept(large) == new
    assert kept(small) == [round(count / 4) for count in new]
    with pytest.raises(UserError, match=f"^portion has no effect .* lower; {MINE} uses it"):
        learner_of("links", "lower", portion=0.25)
    with pytest.raises(UserError, match=f"^budget has no effect with strategy {MINE}; emr, gem"):
        learner_of("links", MINE, budget="5%")


def test_a_recipe_may_speak_of_it(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        f"[settings]\ndim = 16\n[continual]\nlater_rate = 0.5\n"
        f"[strategies.{MINE}]\nportion = 0.125\nlater_epochs = 3\n[strategies.emr]\nbudget = '2x'",
        encoding="utf-8",
    )
    settings = load_recipe(str(file), "", "transe", strategy=MINE).settings
    expected = Settings("transe", MINE, dim=16, later_rate=0.5, portion=0.125, later_epochs=3)
    assert settings == expected
    assert "portion" not in load_recipe(str(file), "", "transe", strategy="emr").settings
    file.write_text(f"[strategies.{MINE}]\nportion = 3", encoding="utf-8")
    with pytest.raises(UserError, match=r"portion=3\.0: expected a number above 0"):
        load_recipe(str(file), "", "transe", strategy=MINE)


def test_a_strategy_that_derives_from_another_has_its_settings_and_recipe() -> None:
    class Derived(Strategy.registry["dicgrl"], name="derived-of-the-tests"):  # type: ignore[misc]
        @dataclass(frozen=True)
        class Settings(Strategy.registry["dicgrl"].Settings):  # type: ignore[name-defined]
            extra: int = option(1, "What it has besides.", least=0)

    shipped = load_recipe("best", "", "transe", disentangled=True, strategy="dicgrl").settings
    derived = load_recipe("best", "", "transe", disentangled=True, strategy=Derived.name).settings
    assert derived.changed({"strategy": "dicgrl"}) == shipped
    assert derived.extra == 1 and "extra" not in shipped


@pytest.mark.parametrize("model", ["transe", "gat"])
def test_it_is_asked_who_uses_a_setting(model: str) -> None:
    task = task_of_model(model)
    assert strategies_using("portion") == [MINE]
    assert strategies_using("later_rate")[-2:] == [MINE, BOTH]
    check_use(["portion"], task, [Form("lower", False), Form(MINE, False)])
    with pytest.raises(UserError, match=f"^portion has no effect with strategy upper; {MINE} uses"):
        check_use(["portion"], task, [Form("upper", False)])


def test_the_command_line_takes_it_and_refuses_what_makes_no_sense(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place, run = str(write_ring(tmp_path / "ring")), str(tmp_path / "run")
    for words, message in (
        (("--strategy", "lower", "--set", "portion=1"), f"strategy lower; {MINE} uses it"),
        (("--strategy", MINE, "--set", "portion=7"), "portion=7.0: expected a number above 0"),
        (("--strategy", MINE, "--set", "potion=1"), "did you mean 'portion'"),
        (("--strategy", MINE, "--set", "strength=1"), f"strategy {MINE}; ewc, {BOTH} use it"),
    ):
        assert called("run", place, *SMALL, *words, monkeypatch=monkeypatch) == 2
        assert message in " ".join(capsys.readouterr().err.split())
    words = ("run", place, *SMALL, "--set", "portion=0.25", "--out", run, "--json")
    asked = ("--strategy", f"lower,{MINE}")  # one of them uses it
    assert called(*words, *asked, monkeypatch=monkeypatch) == 0
    lower, mine = json.loads(capsys.readouterr().out)
    assert "portion" not in lower["settings"] and mine["settings"]["portion"] == 0.25
    learner = Learner.load(Path(run) / MINE, device="cpu")
    assert learner.settings.portion == 0.25


def test_a_run_that_was_saved_goes_on_with_it(tmp_path: Path) -> None:
    learner = taught(learner_of("links", MINE, portion=0.25), 2)
    learner.save(tmp_path / "run")
    loaded = Learner.load(tmp_path / "run", device="cpu")
    assert loaded.settings == learner.settings and loaded.settings.portion == 0.25
    assert kept(taught(loaded)) == kept(taught(learner))
    assert loaded.tests == learner.tests


def test_a_name_of_another_section_cannot_be_taken() -> None:
    class Rated(Strategy, name="rated-of-the-tests"):
        @dataclass(frozen=True)
        class Settings(LaterSettings):
            lr: float = option(0.1, "One more learning rate.")

    with pytest.raises(
        UserError, match=r"^lr is a setting of both LinkSchedule and .*Rated\.Settings"
    ):
        Settings("transe", Rated.name)


# A strategy of ingredients.


def test_settings_of_ingredients_are_joined() -> None:
    options = Strategy.registry[BOTH].Settings.options()
    assert options.keys() == {"budget", "strength"} | LaterSettings.options().keys()
    settings = Settings("transe", BOTH, budget="5%", strength=2.0, later_epochs=3)
    assert (settings.budget, settings.strength, settings.later_epochs) == ("5%", 2.0, 3)
    with pytest.raises(UserError, match=r"^strength=-1\.0: expected at least 0"):
        Settings("transe", BOTH, strength=-1)
    with pytest.raises(UserError, match=r"^budget='some': expected a share such as 10%"):
        Settings("transe", BOTH, budget="some")


@pytest.mark.parametrize("kind", ["links", "nodes"])
def test_each_ingredient_does_its_part(kind: str) -> None:
    def weights(strategy: str, **changes: object) -> tuple[list[torch.Tensor], list[int]]:
        learner = taught(learner_of(kind, strategy, **changes), evaluate=False)
        model = learner.trainer.model
        found = [table.rows for table in model.tables().values()] + list(model.parameters())
        return found, [report.replayed_examples for report in learner.reports]

    both, replayed = weights(BOTH, budget="50%", strength=100.0)
    assert replayed[0] == 0 and min(replayed[1:]) > 0
    for strategy, changes in (
        ("emr", {"budget": "50%"}),
        ("ewc", {"strength": 100.0}),
        ("lower", {}),
    ):
        other, _ = weights(strategy, **changes)
        assert not all(torch.equal(a, b) for a, b in zip(both, other, strict=True)), strategy
    without_penalty, drawn = weights(BOTH, budget="50%", strength=0.0)
    assert drawn == replayed
    none, drawn = weights(BOTH, budget="0", strength=100.0)
    assert drawn == [0, 0, 0]
    assert not all(torch.equal(a, b) for a, b in zip(without_penalty, none, strict=True))
    penalised, _ = weights("ewc", strength=100.0)  # nothing is replayed: the same as ewc
    assert all(torch.equal(a, b) for a, b in zip(none, penalised, strict=True))


def test_what_an_ingredient_remembers_is_saved(tmp_path: Path) -> None:
    learner = taught(learner_of("links", BOTH, strength=50.0), 2)
    assert learner.strategy.keeps_state
    learner.save(tmp_path / "run")
    loaded = Learner.load(tmp_path / "run", device="cpu")
    assert loaded.settings == learner.settings
    for each in (learner, loaded):
        each.learn(ring()[2])
    pairs = zip(
        learner.trainer.model.tables().values(),
        loaded.trainer.model.tables().values(),
        strict=True,
    )
    assert all(torch.equal(mine.rows, theirs.rows) for mine, theirs in pairs)
