"""A served run, and a real browser to look at it with."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TOKEN = "a token for tests"
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
DRIVER = shutil.which("chromedriver")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--enable-unsafe-swiftshader", "--disable-dev-shm-usage"),
)


@contextmanager
def served(folder: Path, copy: Path, *options: str, port: int = 0) -> Iterator[str]:
    """The address of a server of a copy of a run."""
    if not copy.exists():
        shutil.copytree(folder, copy)
    command = [sys.executable, "-m", "dicgrl", "serve", str(copy), "--port", str(port), *options]
    environment = {**os.environ, "DICGRL_TOKEN": TOKEN, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert "http://" in line, line + process.stdout.read()
            yield line[line.index("http://") :].split()[0]
        finally:
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()


@contextmanager
def browser(size: tuple[int, int] = (1240, 800), *, gpu: bool = False) -> Iterator[Any]:
    """A browser with an empty profile."""
    from selenium import webdriver

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = str(BROWSER)
        flags = [flag for flag in FLAGS if not (gpu and flag == "--disable-gpu")]
        for flag in (*flags, f"--user-data-dir={profile}", f"--window-size={size[0]},{size[1]}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
        try:
            driver.execute_cdp_cmd(
                "Emulation.setDeviceMetricsOverride",
                {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False},
            )
            yield driver
        finally:
            driver.quit()


def there(driver: Any, selector: str, text: str = "", patience: float = 120.0) -> Any:
    """The first element that fits, as soon as there is one that says the text."""
    from selenium.common.exceptions import StaleElementReferenceException
    from selenium.webdriver.support.ui import WebDriverWait

    def found(_: Any) -> Any:
        for element in driver.find_elements("css selector", selector):
            if text in element.get_attribute("textContent"):
                return element
        return None

    waiting = WebDriverWait(
        driver, patience, 0.1, ignored_exceptions=[StaleElementReferenceException]
    )
    return waiting.until(found, f"no {selector} with {text!r}")
