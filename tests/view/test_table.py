import math
from pathlib import Path

import pytest

from bough.view import HtmlFile, MetricTable

ROWS = [
    {"step": 1, "phase": "warmup", "loss/total": 0.5},
    {"step": 2, "phase": "rl", "loss/total": 0.25, "heldout/success": 0.5, "a<b": 7.0},
]


def test_a_table_is_a_list_of_rows_by_column() -> None:
    table = MetricTable(ROWS)
    assert list(table) == ROWS
    assert all(type(row) is dict for row in table)
    assert table.columns == ["step", "phase", "loss/total", "heldout/success", "a<b"]
    assert repr(table) == "MetricTable(2 rows, 5 columns)"


def test_a_column_has_one_value_a_row() -> None:
    table = MetricTable(ROWS)
    assert table.column("loss/total") == [0.5, 0.25]
    first, second = table.column("heldout/success")
    assert math.isnan(first)
    assert second == 0.5
    with pytest.raises(KeyError, match="got 'loss/totl'; need one of step, phase, loss/total"):
        table.column("loss/totl")


def test_a_notebook_shows_the_main_columns() -> None:
    assert MetricTable(ROWS)._repr_html_() == (
        "<table><caption>2 rows; 4 of 5 columns</caption>"
        "<thead><tr><th>step</th><th>phase</th><th>heldout/success</th><th>loss/total</th></tr></thead>"
        "<tbody><tr><td>1</td><td>warmup</td><td></td><td>0.5</td></tr>"
        "<tr><td>2</td><td>rl</td><td>0.5</td><td>0.25</td></tr></tbody></table>"
    )


def test_a_long_table_is_shown_without_its_middle() -> None:
    shown = MetricTable([{"step": step} for step in range(50)])._repr_html_()
    assert shown.startswith("<table><caption>50 rows; 1 of 1 columns</caption>")
    assert shown.count("<tr>") == 1 + 10 + 1 + 10
    assert "<td>9</td></tr><tr><td>...</td></tr><tr><td>40</td>" in shown


def test_an_html_file_is_a_path_and_shows_its_page(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text('<p title="a">b & c</p>', encoding="utf-8")
    page = HtmlFile(path)
    assert str(page) == str(path)
    with open(page, encoding="utf-8") as file:
        assert file.read() == path.read_text(encoding="utf-8")
    assert 'srcdoc="&lt;p title=&quot;a&quot;&gt;b &amp; c&lt;/p&gt;"' in page._repr_html_()
