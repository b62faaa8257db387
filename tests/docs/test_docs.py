"""The README and the guide: every Python block and every command in them is run, or, when it is long, checked."""

import re
from pathlib import Path

import pytest
import torch
from tests.docs.pages import PAGES, ROOT, run_page
from tests.hub_server import Hub
from tests.missing import need

MODEL = "Qwen/Qwen3-0.6B"
"""The model of the hub that pages name."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT).with_suffix("")))
def test_a_page_does_what_it_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    text = page.read_text(encoding="utf-8")
    need(*re.findall(r"^<!-- needs (\w+) -->$", text, re.MULTILINE))
    if f"--policy {MODEL}" in text:
        hub: Hub = request.getfixturevalue("hub")
        hub.add(MODEL, {"config.json": b"{}", "model.safetensors": b""})
    torch.set_num_threads(1)
    monkeypatch.chdir(tmp_path)
    run_page(page)


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert "://" in target or (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize(
    ("page", "example"),
    [
        ("docs/environments.md", "tools_env"),
        ("docs/environments.md", "own_environment"),
        ("docs/seats.md", "nim"),
    ],
)
def test_an_example_in_a_page_is_the_file(page: str, example: str) -> None:
    code = (ROOT / "examples" / f"{example}.py").read_text(encoding="utf-8")
    assert code.partition('"""\n\n')[2] in (ROOT / page).read_text(encoding="utf-8")
