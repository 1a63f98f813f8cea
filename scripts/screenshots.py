"""Pictures of the page for the docs: docs/pictures/*.png, from a run of the films.

    dicgrl run films --out runs/films
    python -m scripts.screenshots runs/films [--to docs/pictures]

Needs a Chromium with its driver, and selenium. The run is copied first, and a fact is added to the
copy.
"""

from __future__ import annotations

import argparse
import io
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image
from selenium.webdriver.common.keys import Keys
from tests.serve.browser import TOKEN, browser, served, there

WIDE, PHONE = (1160, 740), (390, 780)
LARGE, COLOURS = 150_000, 256  # bytes, and what a larger picture keeps


def main() -> None:
    """Take them."""
    parser = argparse.ArgumentParser(description="Pictures of the page.")
    parser.add_argument("run", type=Path)
    parser.add_argument("--to", type=Path, default=Path("docs/pictures"))
    given = parser.parse_args()
    given.to.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as place,
        served(given.run, Path(place) / "run") as address,
        browser(WIDE) as driver,
    ):
        take(driver, address, given.to)


def take(driver: Any, address: str, to: Path) -> None:
    """All pictures; each waits for what it is to show."""

    def shoot(name: str, at: str, ready: str, act: Callable[[], object] | None = None) -> None:
        driver.get("about:blank")
        driver.get(f"{address}/{at}")
        there(driver, ready)
        if act:
            act()
        time.sleep(2)  # whatever moves comes to rest
        picture = Image.open(io.BytesIO(driver.get_screenshot_as_png())).convert("RGB")
        path = to / f"{name}.png"
        picture.save(path, optimize=True)
        if path.stat().st_size > LARGE:
            picture.quantize(COLOURS, kmeans=4, dither=Image.Dither.NONE).save(path, optimize=True)
        print(f"{path}: {path.stat().st_size / 1000:.0f} kB")

    def search() -> None:
        there(driver, "[role=combobox]").send_keys("alien")
        there(driver, "[role=option]")

    def why() -> None:
        there(driver, ".answers button[aria-expanded]").click()
        there(driver, ".why table")

    def add() -> None:
        head, tail = driver.find_elements("css selector", "[role=combobox]")
        head.send_keys("Alien: Romulus", Keys.ESCAPE)
        there(driver, "input[list]").send_keys("genre")
        tail.send_keys("science fiction film", Keys.ESCAPE)
        there(driver, "input[type=password]").send_keys(TOKEN)
        there(driver, "button[type=submit]").click()
        there(driver, ".outcome .short")

    def dark() -> None:
        button = there(driver, "#theme")
        while button.get_attribute("aria-label") != "Colours: dark":
            button.click()

    answers, legend = ".answers .number", ".legend-row"
    shoot("find", "", ".chip", search)
    shoot("entity", "#/entity/Alien", answers, why)
    shoot("map", "#/map?show=Alien", ".map-card-name")
    shoot("moved", "#/map", legend, lambda: there(driver, "#map-changed").click())
    shoot("run", "#/run", ".chart")
    shoot("change", "#/change", "input[list]", add)
    shoot("map-dark", "#/map", legend, dark)
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": PHONE[0], "height": PHONE[1], "deviceScaleFactor": 1, "mobile": True},
    )
    shoot("phone", "#/entity/Alien", answers)
    shoot("phone-map", "#/map", legend)


if __name__ == "__main__":
    main()
