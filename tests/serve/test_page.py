"""The page in a real browser: every view, growth while it is open, errors, a phone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dicgrl.learner import Learner
from dicgrl.readers.facts import NetworkFacts
from tests.serve.browser import BROWSER, DRIVER, TOKEN, browser, served, there
from tests.serve.small import facts, note_night

pytest.importorskip("fastapi", reason="the extra serve is not installed")
pytest.importorskip("selenium", reason="selenium is not installed")
pytestmark = [
    pytest.mark.skipif(not (BROWSER and DRIVER), reason="there is no chromium with its driver"),
    pytest.mark.filterwarnings("ignore::dicgrl.errors.ModelWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

NASTY = '<img src=x onerror="document.title=1">'


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page") / "run"
    learner = Learner("transe", "fresh", dim=8, epochs=20, device="cpu")
    learner.learn([*facts(0, 40), (NASTY, "genre", "genre 1"), ("a/b%c?d#e", "genre", "genre 2")])
    learner.save(folder)
    learner.learn(facts(40, 50))
    learner.save(folder)
    return folder


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    with browser() as found:
        yield found


@pytest.fixture(scope="module")
def address(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that is only read from."""
    with served(run, tmp_path_factory.mktemp("served") / "run") as found:
        yield found


def go(driver: Any, address: str, at: str = "") -> None:
    driver.get("about:blank")
    driver.get_log("browser")  # what was said before is nobody's here
    driver.get(f"{address}/{at}")


def complaints(driver: Any) -> list[str]:
    """What the browser complained of: errors of scripts, and what the policy of content refused."""
    said = [entry["message"] for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
    return [message for message in said if "ERR_CONNECTION_REFUSED" not in message]


def focused(driver: Any) -> Any:
    return driver.switch_to.active_element


def test_find_by_typing_and_read_what_is_known_and_likely(driver: Any, address: str) -> None:
    go(driver, address)
    there(driver, ".chip")
    field = there(driver, "[role=combobox]")
    field.send_keys("film 4")
    assert there(driver, "[role=option]").text.startswith("film 4\n")
    field.send_keys("\ue015", "\ue007")  # down, enter
    there(driver, "h1", "film 4")
    there(driver, ".facts dd", "genre 4")
    there(driver, ".facts dd", "director 4")
    there(driver, ".ranked li")
    similar = there(driver, "#similar").find_element("xpath", "..")
    assert len(similar.find_elements("css selector", "li")) == 8
    why = there(driver, ".ranked button[aria-expanded=false]")
    why.click()
    there(driver, ".why table", "film")
    assert why.get_attribute("aria-expanded") == "true"
    there(driver, ".facts dd a", "genre 4").click()
    there(driver, "h1", "genre 4")
    there(driver, ".facts dt", "genre of")
    assert driver.title == "genre 4 · dicgrl"
    assert focused(driver).tag_name == "h1"
    assert complaints(driver) == []


def test_labels_are_text_and_find_their_way_through_addresses(driver: Any, address: str) -> None:
    go(driver, address)
    there(driver, "[role=combobox]").send_keys("<img")
    there(driver, "[role=option]", NASTY).click()
    assert there(driver, "h1", NASTY).text == NASTY
    there(driver, "[role=combobox]").send_keys("a/b")
    there(driver, "[role=option]", "a/b%c?d#e").click()
    there(driver, "h1", "a/b%c?d#e")
    there(driver, ".facts dd", "genre 2")
    assert not driver.find_elements("css selector", "main img")
    assert complaints(driver) == []


@pytest.mark.parametrize("flat", ["", "flat"])
def test_the_map_shows_versions_and_who_came(driver: Any, address: str, flat: str) -> None:
    go(driver, address, f"#/map?{flat}")
    there(driver, ".map-said", "10 arrived")
    drawer = there(driver, ".overlay").get_attribute("data-drawer")
    assert drawer == "canvas" if flat else drawer in ("WebGL", "canvas")
    there(driver, "details li", "genre")  # in view, as a list
    there(driver, "#map-changed").click()
    there(driver, ".legend-row", "arrived with this version")
    slider = there(driver, "#map-version")
    slider.send_keys("\ue012")  # to the left: an earlier version
    there(driver, ".map-said", "the first version")
    assert slider.get_attribute("aria-valuetext") == "version 1"
    overlay = there(driver, ".overlay")
    overlay.send_keys("\ue007")  # enter: what is in the middle
    there(driver, ".map-card-name")
    overlay.send_keys("+", "0", "\ue00c")  # closer, all, escape
    assert not there(driver, ".map-card").is_displayed()
    assert complaints(driver) == []


def test_the_map_draws_points(driver: Any, address: str) -> None:
    go(driver, address, "#/map?flat")
    there(driver, ".legend-row")
    painted = """
        const canvas = document.querySelector(".map-stage canvas");
        const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        return data.some((value) => value > 0);
    """
    there(driver, "details li")
    assert driver.execute_script(painted)


def test_the_map_is_not_blank_in_the_frame_in_which_its_size_changes(
    driver: Any, address: str
) -> None:
    go(driver, address, "#/map?flat")
    there(driver, "details li")
    changed = """
        const done = arguments[0];
        const canvas = document.querySelector(".map-stage canvas");
        let begun = false;
        new ResizeObserver(() => {  // begun after the map's own, and so told after it
            if (!begun) {
                begun = true;
                canvas.parentElement.style.width = "500px";
                return;
            }
            const context = canvas.getContext("2d");
            const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
            done([canvas.clientWidth, data.some((value) => value > 0)]);
        }).observe(document.querySelector(".overlay"));
    """
    assert driver.execute_async_script(changed) == [500, True]


def test_what_is_sought_on_the_map_is_shown(driver: Any, address: str) -> None:
    go(driver, address, "#/map?show=film 7")
    there(driver, ".map-card-name", "film 7")
    there(driver, ".map-card", "arrived with version 1")


def test_the_run_tells_quality_cost_drift_and_versions(driver: Any, address: str) -> None:
    go(driver, address, "#/map")
    there(driver, ".legend-row")  # maps tell the drift
    go(driver, address, "#/run")
    for title in ("Cost", "Drift"):
        there(driver, "figure h2", title)
    rows = there(driver, "section [aria-labelledby=versions]").find_elements("css selector", "tr")
    assert len(rows) == 3
    assert "20 facts" in rows[1].text
    there(driver, "#nights")
    figure = there(driver, "figure [role=img]")
    assert figure.get_attribute("aria-label").startswith("Cost.")
    assert complaints(driver) == []


def test_nights_are_told_in_words(driver: Any, run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "run")
    report = {
        "kept": False,
        "facts": {"given": 9, "new": 7},
        "held_out": {"metrics": {"mrr": 0.25}},
        "gates": [{"gate": "mrr-drop 5%", "failed": True}],
        "doubts": ["it knows little"],
    }
    note_night(tmp_path / "run", json.dumps(report))
    with served(run, tmp_path / "run") as address:
        go(driver, address, "#/run")
        there(driver, ".nights summary", "refused").click()
        there(driver, ".nights summary", "7 new facts; MRR 25.0%")
        there(driver, ".nights dd", "mrr-drop 5% failed")
        there(driver, ".nights dd", "it knows little")
        assert complaints(driver) == []


def test_an_address_of_nothing_and_an_entity_that_is_not_there(driver: Any, address: str) -> None:
    go(driver, address, "#/nothing/here")
    there(driver, "h1", "Nothing at this address")
    go(driver, address, "#/entity/Nobody")
    there(driver, ".empty", "Not in the graph")
    go(driver, address, "#/entity/%E0%A4%A")  # no text at all
    there(driver, ".empty")


def test_a_server_that_is_gone_is_told_and_comes_back(
    driver: Any, run: Path, tmp_path: Path
) -> None:
    with served(run, tmp_path / "run") as address:
        go(driver, address)
        there(driver, ".chip")
    there(driver, "#banner", "does not answer")
    driver.execute_script("location.hash = '#/entity/film 3'")
    there(driver, "[role=alert]", "The server does not answer")
    port = int(address.rpartition(":")[2])
    with served(run, tmp_path / "run", port=port):
        there(driver, ".problem button").click()
        there(driver, "h1", "film 3")


def test_growth_while_the_page_is_open(driver: Any, run: Path, tmp_path: Path) -> None:
    with served(run, tmp_path / "run") as address:
        go(driver, address, "#/map")
        there(driver, ".map-said", "10 arrived")
        learner = Learner.load(tmp_path / "run", device="cpu")
        learner.learn(facts(50, 57))
        learner.save(tmp_path / "run")
        there(driver, "#version", "version 3")
        there(driver, ".map-said", "7 arrived")
        assert there(driver, "#map-version").get_attribute("aria-valuetext") == "version 3"
        assert complaints(driver) == []


@pytest.fixture
def own(run: Path, tmp_path: Path) -> Iterator[str]:
    """A server to write to."""
    with served(run, tmp_path / "run") as found:
        yield found


def test_a_fact_is_added_and_what_it_changes_is_shown(driver: Any, own: str) -> None:
    go(driver, own, "#/change")
    button = there(driver, "button[type=submit]")
    head, tail = driver.find_elements("css selector", "[role=combobox]")
    button.click()
    there(driver, ".refused", "Enter a head")
    assert focused(driver) == head
    head.send_keys("film 99", "\ue00c")
    there(driver, "input[list]").send_keys("genre")
    tail.send_keys("genre 3", "\ue00c")
    button.click()
    there(driver, ".refused", "token")
    token = there(driver, "input[type=password]")
    token.send_keys("wrong")
    button.click()
    there(driver, ".refused", "This is not the token")
    token.clear()
    token.send_keys(TOKEN)
    button.click()
    there(driver, ".outcome h2", "added")
    there(driver, ".outcome h3", "At once")
    there(driver, ".outcome li.it", "genre 3")
    there(driver, "#version", "+1")


def test_who_may_not_write_is_told_how(
    driver: Any, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.serve.browser.TOKEN", "")
    with served(run, tmp_path / "run") as address:
        go(driver, address, "#/change")
        there(driver, ".empty", "This server is read-only")


def test_a_phone_needs_no_scrolling_sideways(driver: Any, address: str) -> None:
    size = {"width": 360, "height": 720, "deviceScaleFactor": 2, "mobile": True}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        for at, ready in (
            ("", ".chip"),
            ("#/entity/film 7", ".ranked li"),
            ("#/map", ".legend-row"),
            ("#/run", "figure"),
            ("#/change", "input[list]"),
        ):
            go(driver, address, at)
            there(driver, ready)
            widths = "return [document.documentElement.scrollWidth, innerWidth]"
            scrolled, inner = driver.execute_script(widths)
            assert scrolled <= inner, at
            cards = driver.find_elements("css selector", ".columns > .card")
            tops = [card.rect["y"] for card in cards]
            assert tops == sorted(tops)  # read in the order in which they are seen
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_it_is_used_by_keyboard_and_read_aloud(driver: Any, address: str) -> None:
    for at, ready in (("", ".chip"), ("#/entity/film 7", ".ranked li"), ("#/map", ".legend-row")):
        go(driver, address, at)
        there(driver, ready)
        landmarks = [driver.find_elements("css selector", tag) for tag in ("main", "nav", "header")]
        assert all(len(found) >= 1 for found in landmarks)
        assert len(driver.find_elements("css selector", "h1")) == 1
        unnamed = """
            const named = (e) => e.getAttribute("aria-label") || (e.labels && e.labels.length)
                || e.textContent.trim() || e.title;
            return [...document.querySelectorAll("button, input, select, a[href], [tabindex='0']")]
                .filter((e) => !named(e)).map((e) => e.outerHTML.slice(0, 120));
        """
        assert driver.execute_script(unnamed) == []
    go(driver, address)
    there(driver, ".chip")
    driver.find_element("css selector", "body").send_keys("\ue004")  # tab: something is focused
    assert focused(driver).tag_name != "body"


def test_colours_are_chosen_and_kept(driver: Any, address: str) -> None:
    go(driver, address)
    button = there(driver, "#theme")
    paper = "return getComputedStyle(document.body).backgroundColor"
    while button.get_attribute("aria-label") != "Colours: dark":
        button.click()
    dark = driver.execute_script(paper)
    driver.refresh()
    assert there(driver, "#theme").get_attribute("aria-label") == "Colours: dark"
    assert driver.execute_script(paper) == dark
    while there(driver, "#theme").get_attribute("aria-label") != "Colours: light":
        there(driver, "#theme").click()
    assert driver.execute_script(paper) != dark


def test_a_network_has_classes_and_neighbours(driver: Any, tmp_path: Path) -> None:
    learner = Learner("sage", "fresh", epochs=5, device="cpu", hidden=8)
    learner.learn(
        NetworkFacts(
            nodes=[f"n{i}" for i in range(30)],
            features=[[float(i % 3 == j) for j in range(3)] for i in range(30)],
            classes=[f"class {i % 3}" for i in range(30)],
            edges=[(f"n{i}", f"n{(i + 3) % 30}") for i in range(30)],
        )
    )
    learner.save(tmp_path / "network")
    with served(tmp_path / "network", tmp_path / "copy") as address:
        go(driver, address, "#/entity/n4")
        there(driver, ".facts dd", "class 1")
        there(driver, ".facts dd", "n7")
        there(driver, ".ranked li", "class")
        go(driver, address, "#/map")
        there(driver, ".legend-row", "class 2")
        go(driver, address, "#/change")
        there(driver, ".empty", "Networks are changed on the command line")
        assert complaints(driver) == []
