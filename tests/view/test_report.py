import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bough.tree import Credited, Kind, Outcome
from bough.view import Panel, Report, write_report
from bough.view.chart import Chart, Series, figure, running_mean, ticks
from bough.view.curves import curves
from bough.view.numbers import duration, percent, points, short, signed, typeset
from bough.view.results import headline

VOID = {"meta", "line", "circle", "rect", "polyline", "polygon", "br"}


class Page(HTMLParser):
    """Checks that tags nest, and keeps what there is."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


def written(tmp_path: Path, **fields: object) -> str:
    settings = {"name": "demo", "recipe": "grpo_frozenlake", "config": {"seed": 0}, "metrics": []} | fields
    write_report(tmp_path / "report.html", Report(**settings))
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
    return (tmp_path / "report.html").read_text(encoding="utf-8")


def test_large_settings_are_shown_in_part(tmp_path: Path) -> None:
    text = written(tmp_path, config={"rows": [f'{{"prompt": "p{n}"}}' for n in range(30_000)], "code": "x" * 30_000})
    assert "p99&quot;" in text.replace("\\", "")
    assert "p100&quot;" not in text.replace("\\", "")
    assert "(cut: 30,000 items)" in text
    assert "(cut: 30,000 characters)" in text
    assert len(text) < 100_000


def run_rows(warmup: int = 50, steps: int = 60) -> list[dict[str, int | float | str]]:
    rows: list[dict[str, int | float | str]] = [
        {"step": step, "phase": "warmup", "loss/total": 2.0 / step, "time/learn_s": 1.0}
        for step in range(1, warmup + 1)
    ]
    for step in range(warmup + 1, warmup + steps + 1):
        row = {"step": step, "phase": "rl", "train/success": 0.5, "loss/total": 0.01, "time/grow_s": 3.0}
        held = {"heldout/success": 0.6, "heldout/low": 0.55, "heldout/high": 0.65}
        rows.append(row | (held if step % 10 == 0 else {}))
    return rows


def panel(label: str, solved: int, tasks: int = 100) -> Panel:
    names = tuple(f"t{i}" for i in range(tasks))
    return Panel(label=label, task_ids=names, successes=tuple(i < solved for i in range(tasks)))


def test_a_whole_report(tmp_path: Path, two_paths: Credited) -> None:
    html = written(
        tmp_path,
        metrics=run_rows(),
        panels=(panel("untrained", 2), panel("after warm-up", 30), panel("after training", 60)),
        groups=[[two_paths]],
        manifest={"created": "2026-03-04T10:12:13+00:00"},
        notes=("Stopped early.",),
    )
    page = Page(html)
    for text in (
        "rose from 30.0% after warm-up to 60.0% after training: +30.0 points, 95% interval",
        "60 of 100",
        "Stopped early.",
        "2026-03-04 10:12:13 UTC",
        "warm-up",
        "Loss of reinforcement learning",
        "learn 22%",
        "Best, most divided and worst",
        "not solved",
        "you fell & sank",
    ):
        assert text in page.text
    assert page.tags.count("svg") == 3


def test_the_page_loads_nothing(tmp_path: Path, two_paths: Credited) -> None:
    html = written(tmp_path, metrics=run_rows(), panels=(panel("after", 5),), groups=[[two_paths]])
    page = Page(html)
    assert not {"link", "img", "iframe", "object", "embed"} & set(page.tags)
    assert not {"src", "href", "srcset", "xlink:href"} & {name for name, _ in page.attributes}
    assert not re.search(r"https?:|url\(|@import|fetch\(", html)


NASTY = "</script><script>alert('x')</script><b>&amp;\"'"


def test_no_text_becomes_markup(tmp_path: Path, grown) -> None:
    nodes = [(-1, Kind.PROMPT, NASTY), (0, Kind.ACTION, NASTY), (1, Kind.OBSERVATION, NASTY, Outcome.TERMINATED, True)]
    plain = Page(
        written(
            tmp_path,
            name="x",
            groups=[[grown([(*node[:2], "x", *node[3:]) for node in nodes], task="x")]],
            notes=("x",),
        )
    )
    nasty = Page(
        written(
            tmp_path,
            name=NASTY,
            recipe=NASTY,
            config={NASTY: NASTY},
            manifest={"created": NASTY},
            groups=[[grown(nodes, task=NASTY)]],
            notes=(NASTY,),
            metrics=[],
        )
    )
    assert nasty.tags.count("script") == plain.tags.count("script") == 1
    assert "b" not in nasty.tags
    assert nasty.text.count("alert('x')") >= 8


@pytest.mark.parametrize("rows", [[], run_rows(0, 1), run_rows(2, 0), run_rows(0, 500), run_rows(300, 2)])
def test_runs_of_any_length(tmp_path: Path, rows: list[dict[str, int | float | str]]) -> None:
    page = Page(written(tmp_path, metrics=rows))
    assert "No held-out tasks were evaluated." in page.text
    assert ("svg" in page.tags) == (len(rows) > 1)


def test_values_that_are_not_finite_are_left_out() -> None:
    rows = [{"step": step, "phase": "rl", "reward/mean": math.nan if step == 2 else 1.0 * step} for step in range(1, 5)]
    (chart,) = curves(rows)
    assert chart.series[0].x == (1.0, 3.0, 4.0)
    html = figure(chart)
    assert "nan" not in html
    data = json.loads(re.search(r"<script[^>]*>(.*)</script>", html)[1])
    assert data["series"][0]["y"] == [1.0, 3.0, 4.0]


def test_the_two_losses_have_an_axis_each() -> None:
    titles = {chart.title: chart for chart in curves(run_rows(5, 5))}
    assert max(titles["Loss of the warm-up"].series[0].x) == 5
    assert max(titles["Loss of reinforcement learning"].series[0].y) == 0.01
    assert titles["Success"].span == (1.0, 10.0)
    assert titles["Success"].warmup == 5.0
    assert titles["Success"].series[0].band == ((0.55, 0.65),)


def test_points_lie_where_the_axes_say() -> None:
    series = Series(label="a", tone="one", x=(0.0, 10.0), y=(0.0, 1.0))
    html = figure(Chart(title="A", series=(series,), share=True, full=True))
    assert '<polyline class="one" points="46.0,174.0 488.0,10.0"/>' in html
    assert 'aria-label="A: a from 0.0% at step 0 to 100.0% at step 10"' in html


@given(low=st.floats(-1e6, 1e6), span=st.floats(1e-6, 1e6))
def test_ticks_are_round_and_cover(low: float, span: float) -> None:
    marks = ticks(low, low + span)
    step = marks[1] - marks[0]
    assert marks[0] <= low + 1e-6 * step
    assert marks[-1] >= low + span - 1e-6 * step
    assert 2 <= len(marks) <= 7


def test_ticks_of_one_value() -> None:
    assert ticks(0.0, 0.0) == [0.0, 0.5]
    low, *_, high = ticks(3.0, 3.0)
    assert low <= 3.0 < high


def test_a_running_mean_lies_in_the_middle() -> None:
    assert running_mean([0.0, 3.0, 6.0, 9.0], 3) == [1.5, 3.0, 6.0, 7.5]
    assert running_mean([1.0, 2.0], 1) == [1.0, 2.0]


def test_headlines() -> None:
    assert headline((panel("after training", 25),)) == (
        "Held-out success is 25.0% after training, 95% interval 17.5% to 34.3%, on 100 tasks."
    )
    assert "fell from 60.0% before to 20.0% after" in headline((panel("before", 60), panel("after", 20)))
    assert headline((panel("before", 30), panel("after", 31))).endswith("This could be chance.")
    assert headline((panel("before", 30), panel("after", 40, tasks=80))) == (
        "Held-out success went from 30.0% before to 50.0% after, on different tasks."
    )


def rewarded(label: str, *rewards: float, graded: bool = True) -> Panel:
    """A panel of failures with these rewards."""
    names = tuple(f"t{i}" for i in range(len(rewards)))
    paid = dict(zip(names, rewards, strict=True))
    return Panel(label=label, task_ids=names, successes=(False,) * len(names), rewards=paid, graded=graded)


def test_headlines_of_graded_rewards() -> None:
    before, after = rewarded("before", 0.1, 0.2, 0.3, 0.4), rewarded("after", 0.4, 0.5, 0.5, 0.8)
    told = headline((before, after))
    assert told.startswith(
        "Held-out reward rose from 0.25 before to 0.55 after: +0.3, 95% interval +0.17 to +0.43, on 4 tasks. "
        "Held-out success went from 0.0% before to 0.0% after"
    )
    assert headline((after, before)).startswith("Held-out reward fell from 0.55 after to 0.25 before: -0.3")
    assert headline((before,)).startswith(
        "Held-out reward is 0.25 before, 95% interval 0.0446 to 0.455, on 4 tasks. Held"
    )
    assert headline((before, rewarded("after", 1.0, 1.0))).startswith(
        "Held-out reward went from 0.25 before to 1 after, on different tasks."
    )
    # A cost that all paths pay leaves success in front, and a reward that is success is not shown.
    paid = (rewarded("before", 0.0, -0.1, graded=False), rewarded("after", -0.1, -0.1, graded=False))
    assert headline(paid).startswith("Held-out success went from 0.0%")
    assert "Held-out reward went from -0.05 before to -0.1 after" in headline(paid)
    assert "reward" not in headline((rewarded("before", 0.0, 0.0), rewarded("after", 0.0, 0.0)))


def test_the_shares_of_an_update_are_a_chart() -> None:
    """Where several ranks or threads computed."""
    rows = [{"step": step, "phase": "rl", "update/tokens/0": 300, "update/tokens/1": 100 * step} for step in (1, 3)]
    (chart,) = curves(rows)
    assert chart.title == "Shares of an update, tokens over their mean"
    assert {each.label: each.y for each in chart.series} == {"least": (0.5, 1.0), "most": (1.5, 1.0)}


def test_graded_rewards_are_the_first_table_and_chart(tmp_path: Path) -> None:
    panels = (rewarded("before", 0.1, 0.2), rewarded("after", 0.4, 0.6))
    held = {"heldout/reward": 0.5, "heldout/reward_low": 0.4, "heldout/reward_high": 0.6, "reward/mean": 0.3}
    rows = [{**row, **(held if "heldout/success" in row else {})} for row in run_rows()]
    page = written(tmp_path, panels=panels, metrics=rows)
    assert page.index("<h2>Held-out reward") < page.index("<h2>Held-out success") < page.index("Reward, mean per path")
    first, second, *_ = curves(rows, graded=True)
    assert (first.title, first.wide, second.title, second.wide) == ("Reward, mean per path", True, "Success", False)
    assert first.series[0].band[0] == (0.4, 0.6)
    assert [chart.title for chart in curves(rows)][:2] == ["Success", "Reward, mean per path"]


def test_panels_are_paired_by_task_and_not_by_place() -> None:
    before = Panel(label="before", task_ids=("a", "b", "c"), successes=(True, False, False))
    after = Panel(label="after", task_ids=("c", "b", "a"), successes=(True, False, True))
    again = Panel(label="after", task_ids=("a", "b", "c"), successes=(True, False, True))
    assert after.gain_over(before) == again.gain_over(before)
    with pytest.raises(ValueError, match="got 1 successes for 2 tasks, 1 of them different"):
        Panel(label="x", task_ids=("a", "a"), successes=(True,))
    with pytest.raises(ValueError, match="one or more tasks"):
        Panel(label="x", task_ids=(), successes=())


def test_numbers_as_a_person_reads_them() -> None:
    assert [short(x) for x in (0.0, 0.01234, -0.5, 12.0, 1234.5, 1.2e-5, math.nan)] == [
        *("0", "0.0123", "-0.5", "12", "1,234", "1.2e-05", "nan"),
    ]
    assert [duration(s) for s in (4.21, 59.4, 190.0, 4000.0)] == ["4.2s", "59s", "3m 10s", "1h 06m"]
    assert (percent(0.4375), points(-0.275), signed(-0.001), signed(0.5)) == ("43.8%", "-27.5", "0.00", "+0.50")
    assert typeset("-0.5") == "\u22120.5"


def test_small_numbers_stay_within_the_drawing() -> None:
    series = Series(label="a", tone="one", x=(0.0, 10.0), y=(-3e-5, 1e-4))
    html = figure(Chart(title="A", series=(series,)))
    labels = re.findall(r'<text x="(\d+)" y="[^"]*" text-anchor="end">([^<]*)</text>', html)
    assert [text for _, text in labels] == ["\u22125.0e\u221205", "0", "5.0e\u221205", "1.0e\u221204"]
    assert all(int(x) >= 7 * len(text) for x, text in labels)
    data = json.loads(re.search(r"<script[^>]*>(.*)</script>", html)[1])
    assert data["box"][0] > int(labels[0][0]), "the script reads positions from the same frame"


@given(low=st.floats(-1e3, 1e3), span=st.floats(1e-3, 1e3))
def test_marks_of_an_axis_differ(low: float, span: float) -> None:
    series = Series(label="a", tone="one", x=(0.0, 1.0), y=(low, low + span))
    labels = re.findall(r'text-anchor="end">([^<]*)</text>', figure(Chart(title="A", series=(series,))))
    assert len(set(labels)) == len(labels) >= 2


def test_a_report_draws_what_a_run_measures() -> None:
    measured = {
        "optimizer/gradient_norm": "Gradient norm",
        "train/turns": "Turns, mean per path",
        "train/read_tokens": "Tokens, mean per path",
        "train/truncated": "Paths without a regular end",
        "memory/process_gib": "Memory of the process, GiB",
        "judge/questions_per_turn": "Questions to judges per turn",
        "judge/unparsed": "Judges' answers without a verdict",
        "judge/agreement_verdict": "Paths whose verdict agrees with success",
    }
    rows = [{"step": step, "phase": "rl"} | dict.fromkeys(measured, 0.5) for step in (1, 2)]
    assert {chart.title for chart in curves(rows)} == set(measured.values())


def test_a_group_shows_its_instructions(tmp_path: Path, grown) -> None:
    credited = grown([(-1, Kind.PROMPT, "the map"), (0, Kind.ACTION, "up", Outcome.TERMINATED)])
    credited.tree.info[0]["instructions"] = "Reach <G>."
    page = Page(written(tmp_path, groups=[[credited]]))
    assert "Reach <G>." in page.text


def test_a_group_is_a_conversation(tmp_path: Path, grown) -> None:
    credited = grown(
        [
            (-1, Kind.PROMPT, "the map"),
            (0, Kind.ACTION, "up"),
            (1, Kind.OBSERVATION, "a wall"),
            (2, Kind.ACTION, "left"),
            (3, Kind.OBSERVATION, "the goal", Outcome.TERMINATED, True),
        ]
    )
    infos = credited.tree.info
    infos[0]["instructions"], infos[1]["raw"] = "Reach G.", "I go up. <up>"
    page = Page(written(tmp_path, groups=[[credited]]))
    at = page.text.index("system")
    for text in (
        "Reach G.",
        "user",
        "the map",
        "assistant",
        "I go up. <up>",
        "action: up",
        "a wall",
        "left",
        "the goal",
    ):
        at = page.text.index(text, at)
    assert "action: left" not in page.text
