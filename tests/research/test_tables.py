from __future__ import annotations

import pytest

from dicgrl.research.tables import Compared, Table


def test_mean_and_standard_deviation_over_seeds() -> None:
    found = Compared([10.0, 12.0, 17.0], paper=12.5)
    assert found.mean == pytest.approx(13.0)
    assert found.std == pytest.approx(13**0.5)  # of a sample: (9 + 1 + 16) / 2
    assert found.cells() == ["13.0 ± 3.6", "12.5", "+0.5"]
    assert found.data()["values"] == [10.0, 12.0, 17.0]


def test_the_difference_is_that_of_the_printed_numbers() -> None:
    assert Compared([47.66], paper=47.7).difference == 0.0
    assert Compared([47.64], paper=47.7).difference == -0.1
    assert Compared([47.64], paper=47.7).cells() == ["47.6", "47.7", "-0.1"]


def test_what_is_missing_is_empty() -> None:
    assert Compared([], paper=3.0).cells() == ["", "3.0", ""]
    assert Compared([3.0]).cells() == ["3.0", "", ""]
    assert Compared([3.0]).std is None and Compared([]).data()["difference"] is None


def test_markdown() -> None:
    table = Table("Title", ["name", "ours"], labels=1)
    table.add(["a|b", "1.0"], {"name": "a|b"})
    assert table.markdown().splitlines() == [
        "| name | ours |",
        "| --- | ---: |",
        "| a\\|b | 1.0 |",
    ]
    assert table.data == [{"name": "a|b"}]
    with pytest.raises(ValueError, match="1 cells for 2 columns"):
        table.add(["x"], {})


def test_a_table_for_the_terminal() -> None:
    table = Table("Title", ["name", "ours"])
    table.add(["first", "1.0"], {})
    shown = table.rich()
    assert [column.header for column in shown.columns] == ["name", "ours"]
    assert [column.justify for column in shown.columns] == ["left", "right"]
    assert shown.row_count == 1
