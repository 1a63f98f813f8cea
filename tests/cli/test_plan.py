"""`dicgrl plan`: what a graph takes, counted and measured."""

from __future__ import annotations

import json

import pytest

from dicgrl.jobs import capacity
from dicgrl.models.queries import ranks
from tests.cli.helpers import Cli, refused

SIZE = ("plan", "--entities", "1000", "--triples", "9000", "--dim", "8", "--device", "cpu")


def planned(cli: Cli, *more: str) -> dict:  # type: ignore[type-arg]
    done = cli(*SIZE, *more, "--json")
    assert done.code == 0, done.err
    return dict(json.loads(done.out))


def test_memory_is_what_the_settings_ask_for(cli: Cli) -> None:
    adam = planned(cli, "--no-measure")["memory"]["device"]
    assert adam["rows"] == 1000 * 8 * 4
    assert adam["gradients and optimizer"] == 1000 * (8 * 12 + 4)  # two moments, steps, a gradient
    short = planned(
        cli, "--no-measure", "--set", "optimizer=rowwise", "--set", "precision=bfloat16"
    )
    assert short["memory"]["device"]["rows"] == 1000 * 8 * 2
    assert short["memory"]["device"]["gradients and optimizer"] == 1000 * 12
    assert short["seconds"] is None and short["rates"] is None and short["fits"]


def test_the_process_itself_and_what_ranking_takes_are_counted(cli: Cli) -> None:
    """Scores of one side are held for as many questions as a bound allows."""
    few = planned(cli, "--no-measure", "--model", "transe")
    asked = few["memory"]["device"]["ranking, at most"]
    assert 1000 * 1000 * 4 < asked < 1 << 30
    most = planned(cli, "--no-measure", "--model", "transe", "--entities", "3000000")
    assert most["memory"]["device"]["ranking, at most"] == 1 << 30
    assert few["memory"]["host"]["Python and PyTorch"] > 200_000_000


def test_what_follows_one_another_does_not_add_up(cli: Cli) -> None:
    """Known answers are sorted, then steps are taken, then test triples are ranked."""
    found = planned(cli, "--no-measure", "--model", "transe")
    device, host = found["memory"]["device"], found["memory"]["host"]
    held = sum(host.values()) - host["while they are taken in"]
    held += sum(device[name] for name in ("rows", "gradients and optimizer"))
    held += device["triples and known answers"]
    asked = device["ranking, at most"]
    assert asked > device[capacity._COPY] + device["a step"]
    assert found["needed_bytes"] == held + asked
    assert "at one time" in cli(*SIZE, "--no-measure").out


def test_what_is_on_a_disk_needs_no_memory(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    size = ("--triples", "100000000", "--no-measure")
    monkeypatch.setattr(capacity, "free_memory", lambda _: 1 << 30)
    monkeypatch.delenv("DICGRL_SPILL", raising=False)
    alone = planned(cli, *size)
    assert not alone["spilled_bytes"] and "DICGRL_SPILL=FOLDER" in alone["advice"][0]
    monkeypatch.setenv("DICGRL_SPILL", "/tmp")
    spilled = planned(cli, *size)
    assert spilled["spilled_bytes"] == 100_000_000 * 120
    assert spilled["needed_bytes"] == alone["needed_bytes"] - 100_000_000 * 60  # what is held
    assert not any("DICGRL_SPILL" in line for line in spilled["advice"])
    assert "are on a disk" in cli(*SIZE, *size).out
    assert not planned(cli, "--no-measure")["spilled_bytes"], "small arrays stay in memory"


def test_text_takes_less_than_parquet_which_is_assumed(cli: Cli) -> None:
    usual, text = planned(cli, "--no-measure"), planned(cli, "--no-measure", "--source", "text")
    assert usual["source"] == "parquet" and text["source"] == "text"
    assert usual["needed_bytes"] - text["needed_bytes"] == usual["memory"]["host"]["pyarrow"]
    assert "read from parquet" in cli(*SIZE, "--no-measure").out
    refused(cli(*SIZE, "--no-measure", "--source", "csv"), "unknown source 'csv'")


def test_a_copy_of_what_is_learned_is_counted(cli: Cli) -> None:
    """Training may return to it, and saving makes one."""
    memory = planned(cli, "--no-measure")["memory"]["device"]
    assert memory[capacity._COPY] == 1000 * (8 * 12 + 4)  # rows, two moments, steps


def test_a_step_holds_vectors_of_negatives_only_as_gradients_of_a_large_table(cli: Cli) -> None:
    own = ("--no-measure", "--model", "transe", "--dim", "256", "--set", "negatives=64")
    small, large = (
        planned(cli, *own, *more)["memory"]["device"]["a step"]
        for more in ((), ("--set", "precision=bfloat16"))
    )
    vectors = 1024 * 64 * 256 * 4
    assert small < vectors < large < 2 * vectors


def test_rankings_by_matrices_are_counted_as_they_are_made(cli: Cli) -> None:
    assert capacity.QUESTIONS == ranks._QUESTIONS
    many = planned(cli, "--no-measure", "--model", "rotate", "--entities", "1000000")
    assert many["memory"]["device"]["ranking, at most"] == 64 * 1_000_000 * 12


def test_vectors_of_components_are_counted_whole(cli: Cli) -> None:
    divided = planned(cli, "--no-measure", "--set", "components=4", "--set", "top=2")
    assert divided["memory"]["device"]["rows"] == 1000 * 16 * 4


def test_times_follow_the_size(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    rates = capacity.Rates(positives=1000.0, indexed=500.0, ranked=1e6, rows=10)
    monkeypatch.setattr(capacity, "measure_rates", lambda *_: rates)
    seconds = planned(cli)["seconds"]
    assert seconds["epoch"] == 9.0 and seconds["taken in"] == 18.0
    assert seconds["training"] == 9.0 * seconds["epochs"]
    assert seconds["ranking of 1,000 triples"] == 2.0


def test_ranks_divide_what_is_dealt_and_nothing_else(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = capacity.Rates(positives=1000.0, indexed=500.0, ranked=1e6, rows=10)
    monkeypatch.setattr(capacity, "measure_rates", lambda *_: rates)
    alone, four = planned(cli), planned(cli, "--ranks", "4")
    mine, whole = four["memory"]["device"], alone["memory"]["device"]
    for name in ("rows", "gradients and optimizer"):
        assert mine[name] == whole[name] / 4
    copies = 4 * 8 * (2 * 1024 // 4 + 1000 // 4) * 3  # of what is sent, and of own entities
    assert mine["a step"] == whole["a step"] / 4 + copies
    triples = whole["triples and known answers"] - 9000 * 2 * 24 * 3 / 4
    assert mine["triples and known answers"] == triples
    host = dict(four["memory"]["host"])
    assert host.pop("the whole model, to load or commit it") == 1000 * (8 * 12 + 4)
    assert host == alone["memory"]["host"] and four["store_bytes"] == alone["store_bytes"]
    assert four["seconds"]["epoch"] == 9.0 / 4 and four["seconds"]["taken in"] == 18.0
    assert alone["sent_bytes"] == 0
    # Of two ends of each triple: an id, a vector, a gradient; of relations a ring sends two.
    steps = -(-9000 // 1024)
    sent = 2 * 9000 / 4 * (8 + 2 * 4 * 8) + steps * 2 * 4 * 1000 * 8
    assert four["sent_bytes"] == round(sent * 3 / 4)
    shown = cli(*SIZE, "--no-measure", "--ranks", "4").out
    assert "each of 4 processes" in shown and "GB to others in an epoch" in shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--ranks", "2", "--set", "negatives=0", "--model", "complex"), "negatives=64"),
        (("--ranks", "2", "--model", "convkb"), "weights besides its vectors"),
        (("--ranks", "1001"), "1000 entities are too few for 1001 processes"),
    ],
)
def test_what_several_processes_cannot_learn_is_not_planned(
    words: tuple[str, ...], said: str, cli: Cli
) -> None:
    refused(cli(*SIZE, *words, "--no-measure"), said)


def test_this_machine_is_measured(cli: Cli) -> None:
    found = planned(cli, "--set", "negatives=2", "--set", "batch=64")
    assert all(rate > 0 for rate in found["rates"].values()) and found["seconds"]["update"] > 0
    shown = cli(*SIZE, "--set", "negatives=2", "--set", "batch=64").out
    assert "it fits" in shown and "positives/s" in shown


def test_what_does_not_fit_comes_with_advice(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = planned(cli, "--no-measure")
    rowwise = planned(cli, "--no-measure", "--set", "optimizer=rowwise")
    for free, said in (
        (rowwise["needed_bytes"], "optimizer=rowwise takes"),
        (1000, "triples alone do not fit"),
    ):
        monkeypatch.setattr(capacity, "free_memory", lambda _, free=free: free)
        found = planned(cli, "--no-measure")
        assert not found["fits"] and found["devices"] == -(-whole["needed_bytes"] // free)
        assert any(said in line for line in found["advice"])
    assert "such have free" in cli(*SIZE, "--no-measure").out


def test_the_dim_that_is_advised_fits(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    size = ("--entities", "9000000", "--triples", "100", "--device", "cpu", "--no-measure")
    monkeypatch.setattr(capacity, "free_memory", lambda _: 8_000_000_000)
    last = json.loads(cli("plan", *size, "--json").out)["advice"][-1]
    dim = last.removeprefix("with these, --set dim=").removesuffix(" fits")
    less = ("--dim", dim, "--set", "optimizer=rowwise", "--set", "precision=bfloat16")
    assert json.loads(cli("plan", *size, *less, "--json").out)["fits"]


@pytest.mark.parametrize(
    ("entities", "triples", "what"),
    [("3000000000", "10", "entities"), ("10", "3000000000", "triples to learn from")],
)
def test_more_than_a_graph_holds_is_said(cli: Cli, entities: str, triples: str, what: str) -> None:
    size = ("--entities", entities, "--triples", triples, "--no-measure", "--device", "cpu")
    assert f"a graph holds at most 2,147,483,647 {what}" in cli("plan", *size).out


def test_as_many_entities_as_freebase_has_are_no_limit_of_a_graph(cli: Cli) -> None:
    big = ("plan", "--entities", "86054151", "--triples", "338586276", "--no-measure")
    assert "a graph holds" not in cli(*big, "--device", "cpu").out


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (("--model", "gat"), "gat"),
        (("--set", "dims=3"), "did you mean 'dim'?"),
        (("--set", "precision=int8"), "int8"),
    ],
)
def test_what_makes_no_sense_is_refused(cli: Cli, wrong: tuple[str, ...], said: str) -> None:
    refused(cli(*SIZE, "--no-measure", *wrong), said)


def test_a_size_is_needed(cli: Cli) -> None:
    assert cli("plan", "--entities", "0", "--triples", "9").code == 2
    assert cli("plan", "--entities", "7").code == 2
