from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

import pytest

from dicgrl.report.progress_lines import LOG, progress_lines


class Lines(logging.Handler):
    """Keeps messages, and tells when there is one."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self.heard = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())
        self.heard.set()


@pytest.fixture
def lines() -> Iterator[Lines]:
    handler, before = Lines(), (LOG.handlers, LOG.level)
    LOG.handlers = [handler]
    LOG.setLevel(logging.INFO)
    yield handler
    LOG.handlers = before[0]
    LOG.setLevel(before[1])


def test_it_is_never_silent_for_long(lines: Lines) -> None:
    before = threading.active_count()
    with progress_lines("work", wanted=True, every=0.01) as tell:
        assert lines.heard.wait(30)  # although nothing was told
        assert lines.said[0].startswith("work: ")
        tell("epoch 7")
        for _ in range(1000):
            lines.heard.clear()
            assert lines.heard.wait(30)
            if lines.said[-1].startswith("work: epoch 7, "):
                break
        else:
            pytest.fail("the newest status was never said")
    assert threading.active_count() == before


@pytest.mark.parametrize(("wanted", "level"), [(False, logging.INFO), (True, logging.WARNING)])
def test_nobody_is_told_who_did_not_ask(lines: Lines, wanted: bool, level: int) -> None:
    LOG.setLevel(level)
    before = threading.active_count()
    with progress_lines("work", wanted=wanted, every=0.001) as tell:
        assert threading.active_count() == before
        tell("epoch 1")
    assert not lines.said
