"""Filters, links, keys and refusals of the viewer in a real browser, over a run with every kind of episode."""

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
import pytest
from tests.missing import AXE, need
from tests.trees import random_tree
from tests.viewer.browser import ELSEWHERE, opened_browser, opened_page

from bough.store import write_trees
from bough.tree import Kind, Ternary, Tree
from large_tree import STEP, large_tree
from served_viewer import served

DAMAGED, VARIED, SMALL = STEP - 1, STEP + 1, STEP + 2
"""Steps whose trees are damaged, have everything in them, and are small; that of `STEP` is large."""


@pytest.fixture(scope="module")
def runs(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run with more trees, and with a task that flips; beside it a run of each kind of damage."""
    folder = tmp_path_factory.mktemp("pages")
    soko = folder / "soko"
    shutil.copytree(run, soko)
    write_trees(soko / "trees" / f"step_{STEP:06d}.safetensors", [large_tree(10_000)])
    rng = np.random.default_rng(3)
    varied = [_varied(random_tree(rng, task=f"task-{number % 3}")) for number in range(9)]
    write_trees(soko / "trees" / f"step_{VARIED:06d}.safetensors", varied)
    write_trees(soko / "trees" / f"step_{SMALL:06d}.safetensors", [large_tree(12)])
    for step, won in ((VARIED, (True, False, True)), (SMALL, (False, True, True))):
        tasks = {f"held-{number}": each for number, each in enumerate(won)}
        (soko / "heldout" / f"step_{step:06d}.json").write_text(json.dumps({"tasks": tasks}))
    for name, file in (("no-settings", "config.json"), ("no-metrics", "metrics.jsonl")):
        shutil.copytree(run, folder / name)
        (folder / name / file).write_text("{\n")
    (soko / "trees" / f"step_{DAMAGED:06d}.safetensors").write_bytes(b"damaged")
    return folder


def _varied(tree: Tree) -> Tree:
    """A tree with an action that was cut off, read back from an earlier step."""
    cut_off = tree.cut_off.copy()
    cut_off[np.flatnonzero(tree.kind == Kind.ACTION)[-1]] = Ternary.YES
    return replace(tree, cut_off=cut_off, replayed=tree.task.id == "task-0")


@pytest.fixture(scope="module")
def address(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(runs, tmp_path_factory.mktemp("branches")) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with opened_browser() as browser:
        yield browser


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    with opened_page(browser) as page:
        yield page


def answer(address: str, path: str) -> Any:
    with urlopen(f"{address}api/run/soko/{path}") as found:
        return json.load(found)


def shown(page: Any) -> int:
    """The number of episodes that the page has found."""
    return int(page.locator("p[role=status]").inner_text().split()[0])


def test_every_filter_keeps_what_it_names(page: Any, address: str) -> None:
    rows, flags = answer(address, f"step/{VARIED}")["paths"], answer(address, "trees")["flags"]
    page.goto(f"{address}#/run/soko/find?step={VARIED}")
    page.wait_for_selector("tbody tr")
    assert shown(page) == len(rows["tree"])
    found = {}
    for name, bit in flags.items():
        page.get_by_label(name, exact=True).check()
        assert shown(page) == sum(bool(each & bit) for each in rows["flags"]), name
        found[name] = shown(page)
        page.get_by_label(name, exact=True).uncheck()
    assert 0 < found["cut off"] < len(rows["tree"])
    assert 0 < found["replayed"] < len(rows["tree"])
    assert found["divided group"] > 0
    assert 0 < found["unparsed"] < len(rows["tree"])
    ends = dict(zip(("solved", "not solved"), (True, False), strict=True))
    for name in ("solved", "not solved", "truncated", "failed", "refused"):
        page.get_by_label("outcome", exact=True).select_option(name)
        column = rows["success"] if name in ends else rows["outcome"]
        assert shown(page) == column.count(ends.get(name, name)) > 0, name
    page.get_by_label("outcome", exact=True).select_option("")
    page.get_by_label("task contains").fill("TASK-1")
    assert shown(page) == rows["task"].count("task-1") > 0
    page.reload()
    page.wait_for_selector("tbody tr")
    assert shown(page) == rows["task"].count("task-1"), "the address has the filters"


def test_each_column_sorts_both_ways(page: Any, address: str) -> None:
    page.goto(f"{address}#/run/soko/find?step={VARIED}")
    page.wait_for_selector("tbody tr")
    for at, name in ((4, "turns"), (5, "tokens"), (3, "return")):
        for direction in (1, -1):
            page.get_by_role("button", name=name, exact=True).click()
            cells = page.locator(f"tbody td:nth-child({at + 1})").all_inner_texts()
            values = [float(cell.replace("\N{MINUS SIGN}", "-")) for cell in cells if cell != "\N{EN DASH}"]
            assert values == sorted(values, reverse=direction < 0), name


def test_every_link_leads_to_a_page(page: Any, address: str) -> None:
    """Follow the links, two of each kind."""
    kinds: dict[str, int] = {}
    waiting, seen = ["#/runs"], set[str]()
    while waiting:
        link = waiting.pop(0)
        kind = re.sub(r"\d+", "N", link.replace("no-metrics", "x").replace("no-settings", "x"))
        if link in seen or kinds.get(kind, 0) >= 2 or "/x" in kind:
            continue
        seen.add(link)
        kinds[kind] = kinds.get(kind, 0) + 1
        page.goto(address + link)
        page.wait_for_selector("main h1")
        assert page.locator("[role=alert]:not(:empty):not(.alarm)").all_inner_texts() == [], link
        waiting += [href for each in page.locator("a").all() if (href := each.get_attribute("href")).startswith("#/")]
    assert len(kinds) > 6


def test_the_search_finds_texts_and_leads_to_their_turns(page: Any, address: str) -> None:
    page.goto(f"{address}#/run/soko/find?step={SMALL}")
    box = page.get_by_label("search all texts")
    box.fill("push BOXES")
    box.press("Enter")
    page.locator(".hits mark", has_text="Push boxes").first.wait_for()
    page.locator(".hits a").first.click()
    page.wait_for_selector(".conversation")


def test_tasks_that_flipped_are_listed(page: Any, address: str, runs: Path) -> None:
    page.goto(f"{address}#/run/soko")
    names = page.locator(".names")
    page.get_by_label("from", exact=True).select_option(f"step {VARIED}")
    assert names.all_inner_texts() == ["held-1", "held-0"], "gained, lost"
    metrics = runs / "soko" / "metrics.jsonl"
    row = json.loads(metrics.read_text().splitlines()[-1])
    with metrics.open("a") as grown:
        grown.write(json.dumps({**row, "step": 4711}) + "\n")
    page.wait_for_selector(".quiet:has-text('step 4711')")
    assert names.all_inner_texts() == ["held-1", "held-0"], "the choice stays while the run trains"
    page.get_by_label("to", exact=True).select_option(f"step {VARIED}")
    assert names.all_inner_texts() == ["", ""]


def test_the_pages_are_used_by_keys_alone(page: Any, address: str) -> None:
    page.goto(f"{address}#/runs")
    page.wait_for_selector("tbody tr")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    assert page.locator("tbody tr").count() > 0, "the page stays"
    page.get_by_role("button", name="state", exact=True).focus()
    page.keyboard.press("Enter")
    assert page.locator("th[aria-sort]").inner_text() == "state"
    assert page.evaluate("document.activeElement.textContent") == "state", "the key that sorts keeps the focus"
    page.goto(f"{address}#/run/soko/tree/{SMALL}.0")
    canvas = page.locator("canvas.tree-canvas")
    canvas.focus()
    said = page.locator("[aria-live=polite].visually-hidden")
    seen = []
    for key in ("ArrowRight", "ArrowDown", "ArrowUp", "n", "n", "p", "Home"):
        canvas.press(key)
        seen.append(said.inner_text())
    assert seen[0] == seen[2] != seen[1]
    assert seen[3] == seen[5] != seen[4]
    assert seen[6].startswith("turn 0")
    canvas.press("n")
    canvas.press("Shift+n")
    page.wait_for_selector("[role=tab]:has-text('Side by side')")
    assert "beside=" in page.url
    canvas.press("Escape")
    page.wait_for_selector("[role=tab]:has-text('Conversation')")
    canvas.press("Enter")
    for tab in ("Tokens", "Prompt", "Details", "What if"):
        page.keyboard.press("ArrowRight")
        assert page.evaluate("document.activeElement.textContent") == tab
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.className") == "tree-canvas"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser: Any, address: str, scheme: str) -> None:
    need("axe")
    source = AXE.read_text()
    with opened_page(browser, color_scheme=scheme, reduced_motion="reduce") as page:

        def problems() -> list[str]:
            page.evaluate(source)
            found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")["violations"]
            return [
                f"{each['id']} ({each['impact']}): {node['html'][:200]} {node['failureSummary'][:200]}"
                for each in found
                if each["impact"] in ("serious", "critical")
                for node in each["nodes"]
            ]

        for path, ready in (
            ("#/runs", ".chart"),
            ("#/run/soko", ".chart"),
            ("#/run/soko/health", ".sign"),
            (f"#/run/soko/find?step={VARIED}", "tbody tr"),
            ("#/run/none", "[role=alert]"),
        ):
            page.goto(address + path)
            page.locator(ready).first.wait_for()
            assert problems() == [], path
        step = answer(address, "trees")["steps"][0]
        page.goto(f"{address}#/run/soko/tree/{step}.0?node=2")
        for tab in ("Conversation", "Tokens", "Prompt", "Details", "What if"):
            page.get_by_role("tab", name=tab).click()
            assert problems() == [], tab
        page.locator("canvas.tree-canvas").press("Shift+n")
        page.get_by_role("tab", name="Side by side").click()
        assert problems() == [], "side by side"


def test_light_and_dark_are_a_choice_that_stays(page: Any, address: str) -> None:
    page.goto(f"{address}#/runs")
    paper = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(paper)
    page.get_by_role("button", name="light or dark").click()
    after = page.evaluate(paper)
    assert after != before
    page.reload()
    assert page.evaluate(paper) == after


def test_a_large_tree_is_drawn_where_it_is_seen(page: Any, address: str) -> None:
    """At the size of texts most turns are out of view, so few are drawn: `bench/large_tree.py` has the seconds."""
    page.add_init_script(
        "const fill = CanvasRenderingContext2D.prototype.fillText; window.texts = 0;"
        "CanvasRenderingContext2D.prototype.fillText = function (...of) { window.texts += 1; fill.apply(this, of); };"
    )
    page.goto(f"{address}#/run/soko/tree/{STEP}.0")
    canvas = page.locator("canvas.tree-canvas")
    canvas.wait_for()
    count = int(re.sub(r"\D", "", page.locator(".chip", has_text="turns").inner_text()))
    assert count >= 10_000
    canvas.focus()
    page.evaluate("window.texts = 0")
    canvas.press("ArrowRight")
    page.evaluate("() => new Promise(requestAnimationFrame)")
    drawn = page.evaluate("window.texts")
    assert 0 < drawn < count / 20
    canvas.press("0")
    canvas.press("n")
    page.wait_for_selector("[role=tab]")
    assert "node=" in page.url


def test_damaged_files_are_named_on_their_pages(page: Any, address: str) -> None:
    page.goto(f"{address}#/runs")
    page.wait_for_selector("tr.damaged")
    reasons = dict(
        zip(
            page.locator("tr.damaged td:nth-child(2)").all_inner_texts(),
            page.locator("tr.damaged td.bad").all_inner_texts(),
            strict=True,
        )
    )
    assert reasons.keys() == {"no-settings", "no-metrics"}
    assert "config.json" in reasons["no-settings"]
    assert "metrics.jsonl" in reasons["no-metrics"]
    for path, part in (
        ("run/no-metrics", "metrics.jsonl"),
        ("run/no-metrics/health", "metrics.jsonl"),
        ("run/no-settings", "config.json"),
        (f"run/soko/find?step={DAMAGED}", "safetensors"),
        (f"run/soko/tree/{DAMAGED}.0", "safetensors"),
        ("run/soko/tree/7.99", "tree"),
        ("nothing", "no page"),
    ):
        page.goto(f"{address}#/{path}")
        alert = page.locator("main [role=alert]")
        alert.wait_for()
        assert part in alert.inner_text(), path


def test_another_name_of_the_machine_is_refused(page: Any, address: str) -> None:
    found = page.goto(address.replace("127.0.0.1", ELSEWHERE))
    assert found.status == 403
    assert "host" in found.json()["error"]


def test_a_visitor_needs_the_token_once(browser: Any, runs: Path, tmp_path: Path) -> None:
    with served(runs, tmp_path, token="secret", local=False) as address:
        for wrong in ("", "?token=wrong"):
            with opened_page(browser) as page:
                assert page.goto(address + wrong).status == 401
        with opened_page(browser) as page:
            assert page.goto(f"{address}?token=secret#/runs").status == 200
            page.wait_for_selector("tbody tr")
            page.goto(f"{address}#/run/soko")
            page.wait_for_selector("h1:has-text('soko')")
