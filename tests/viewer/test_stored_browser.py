"""Exported pages and reports in a real browser, from files: every page, without a server and without dead controls."""

from pathlib import Path
from typing import Any

import pytest
from tests.viewer.marked import marked_copy
from tests.viewer.test_browser import page as page

from bough.store import RunDirectory
from bough.train.run_parts import RunParts
from bough.viewer.runs import Runs
from bough.viewer.stored_pages import write_folder, write_report

SCRIPT = "<img src=x onerror=\"document.title='hacked'\"><script>document.title='hacked'</script>"


@pytest.fixture(scope="module")
def stored(run: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The addresses of the exported pages and of the report of a run whose texts are full of markup."""
    folder = tmp_path_factory.mktemp("stored")
    marked_copy(run, folder / "runs" / "soko", SCRIPT)
    write_folder(folder / "site", Runs([folder / "runs"]), RunParts(), trees=2)
    write_report(folder / "report.html", RunDirectory.open(folder / "runs" / "soko"), RunParts())
    return {kind: (folder / name).as_uri() for kind, name in (("site", "site/index.html"), ("report", "report.html"))}


@pytest.mark.parametrize("kind", ["site", "report"])
def test_pages_open_from_files(page: Any, stored: dict[str, str], kind: str) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto("about:blank")
    page.goto(stored[kind])
    page.wait_for_selector("h1:has-text('Runs')" if kind == "site" else "h1:has-text('soko')")
    page.goto(f"{stored[kind]}#/run/soko")
    page.wait_for_selector(".headline:has-text('Held-out success')")
    page.wait_for_selector(".state-crashed")
    page.goto(f"{stored[kind]}#/run/soko/health")
    page.wait_for_selector("h2:has-text('Groups without a signal')")
    page.wait_for_selector("h2:has-text('Time by stage')")
    page.goto(f"{stored[kind]}#/run/soko/find")
    page.wait_for_selector("td a")
    assert page.get_by_label("search all texts").count() == 0, "the search needs the server"
    page.locator("td a").first.click()
    page.wait_for_selector("canvas.tree-canvas")
    assert page.locator("#credit").count() == 0, "other rules need the server"
    page.wait_for_selector(".conversation .text:has-text('<script>')")
    page.get_by_role("tab", name="Tokens").click()
    page.wait_for_selector(".token")
    page.get_by_role("tab", name="What if").click()
    page.wait_for_selector("text=Exported pages have no agent")
    assert page.locator(".panel form, .panel button:not([role=tab])").count() == 0
    assert page.title() != "hacked"
    assert all(url.startswith(("file:", "data:")) for url in asked), asked


def test_trees_that_are_left_out_are_said_and_not_linked(page: Any, stored: dict[str, str]) -> None:
    page.goto("about:blank")
    page.goto(f"{stored['site']}#/run/soko/find")
    page.wait_for_selector(".remark:has-text('2 of ')")
    for link in page.locator("td a").all()[::3]:
        page.goto(stored["site"] + link.get_attribute("href"))
        page.wait_for_selector("canvas.tree-canvas")
        page.goto(f"{stored['site']}#/run/soko/find")
        page.wait_for_selector("td a")


def test_a_report_in_a_frame_of_a_notebook_has_links(page: Any, stored: dict[str, str]) -> None:
    page.goto("about:blank")
    text = Path(stored["report"].removeprefix("file://")).read_text()
    page.evaluate(
        "(text) => { const f = document.createElement('iframe'); f.srcdoc = text; document.body.append(f); }", text
    )
    frame = page.frame_locator("iframe")
    frame.locator("h1:has-text('soko')").wait_for()
    frame.get_by_role("link", name="Health").first.click()
    frame.locator("h1:has-text('Health of soko')").wait_for()
