"""The viewer in a real browser: trees, new branches, markup that stays text, and a run that goes on."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.viewer.browser import opened_browser, opened_page

from bough.cli.branch_player import BranchPlayer
from served_viewer import served

SCRIPT = "<img src=x onerror=\"document.title='hacked'\"><script>document.title='hacked'</script>"


@pytest.fixture(scope="module")
def runs(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the run, which tests change."""
    folder = tmp_path_factory.mktemp("shown")
    shutil.copytree(run, folder / "soko")
    return folder


@pytest.fixture(scope="module")
def address(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    player = BranchPlayer()
    with served(runs, tmp_path_factory.mktemp("branches"), player) as address:
        yield address
    player.close()


@pytest.fixture(scope="module")
def page() -> Iterator[Any]:
    with opened_browser() as browser, opened_page(browser) as page:
        yield page


def newest(runs: Path) -> int:
    return max(int(file.stem.removeprefix("step_")) for file in (runs / "soko" / "trees").glob("*.safetensors"))


def test_every_page_opens(page: Any, address: str, runs: Path) -> None:
    step = newest(runs)
    for path, title in (
        ("#/runs", "Runs"),
        ("#/run/soko", "soko"),
        ("#/run/soko/health", "Health of soko"),
        ("#/run/soko/rewards", "Rewards of soko"),
        ("#/run/soko/find", "Episodes"),
        (f"#/run/soko/tree/{step}.0", "sokoban-"),
    ):
        page.goto(address + path)
        page.wait_for_selector(f"h1:has-text('{title}')")
    page.goto(f"{address}#/run/none")
    page.wait_for_selector("[role=alert]:has-text('need one of soko')")


def test_rewards_and_checks_are_beside_each_other(page: Any, address: str) -> None:
    page.goto(f"{address}#/run/soko/rewards")
    page.wait_for_selector("h3:has-text('Check success, never trained on')")
    page.wait_for_selector("h3:has-text('By check success')")
    page.locator("h3:has-text('By invalid_action') + .scroll a").first.click()
    page.wait_for_selector(".conversation .role-assistant")


def test_an_action_is_tried_and_saved(page: Any, address: str, runs: Path) -> None:
    page.goto(f"{address}#/run/soko/tree/{newest(runs)}.0")
    page.wait_for_selector("canvas.tree-canvas")
    page.focus("canvas.tree-canvas")
    page.keyboard.press("ArrowRight")
    page.get_by_role("tab", name="What if").click()
    page.get_by_label("action", exact=True).fill("left")
    page.get_by_role("button", name="Take this action").click()
    page.wait_for_selector("h2:has-text('new branch 0')", timeout=120_000)
    page.get_by_role("tab", name="What if").click()
    page.get_by_role("button", name="Save as a demonstration").click()
    page.wait_for_selector("text=warmup.file=")


def test_markup_in_an_action_is_text(page: Any, address: str, runs: Path) -> None:
    page.goto(f"{address}#/run/soko/tree/{newest(runs)}.1")
    page.focus("canvas.tree-canvas")
    page.keyboard.press("ArrowRight")
    page.get_by_role("tab", name="What if").click()
    page.get_by_label("action", exact=True).fill(SCRIPT)
    page.get_by_role("button", name="Take this action").click()
    page.wait_for_selector("h2:has-text('new branch')", timeout=120_000)
    page.get_by_role("tab", name="Conversation").click()
    page.wait_for_selector(".conversation .text:has-text('<script>')")
    assert page.locator(".conversation img, .conversation script").count() == 0
    page.get_by_role("tab", name="Tokens").click()
    page.wait_for_timeout(300)
    assert page.title() != "hacked"


def test_markup_in_a_task_is_text(page: Any, address: str, runs: Path) -> None:
    step = newest(runs)
    page.goto(f"{address}#/run/soko/find?step={step}")
    page.wait_for_selector("table a")
    page.route("**/api/run/soko/step/*", lambda route: route.fulfill(json=_with_markup(route)))
    page.reload()
    page.wait_for_selector("td:has-text('onerror')")
    assert page.title() != "hacked"
    page.unroute("**/api/run/soko/step/*")


def _with_markup(route: Any) -> Any:
    found = route.fetch().json()
    found["paths"]["task"] = [SCRIPT] * len(found["paths"]["task"])
    return found


def test_a_page_follows_its_run(page: Any, address: str, runs: Path) -> None:
    page.goto(f"{address}#/runs")
    page.wait_for_selector("td:has-text('sokoban')")
    metrics = runs / "soko" / "metrics.jsonl"
    row = json.loads(metrics.read_text().splitlines()[-1])
    with metrics.open("a") as grown:
        grown.write(json.dumps({**row, "step": 4711}) + "\n")
    page.wait_for_selector("td:has-text('4711')", timeout=30_000)
