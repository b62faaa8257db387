"""Takes the pictures of docs/viewer.md: a tree of a run in `bough view`, in a real browser.

python scripts/viewer_picture.py ADDRESS runs/grpo_sokoban 110.1

ADDRESS is that of a running `bough view`. It needs `pip install playwright` and Chromium.
"""

import argparse
from pathlib import Path

from bough.worlds.miniwob.chromium import find_chromium

PICTURE = Path(__file__).parents[1] / "docs" / "viewer_tree.png"


def main() -> None:
    """Open the tree at its first turn, and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address")
    parser.add_argument("run", type=Path)
    parser.add_argument("tree")
    given = parser.parse_args()
    from playwright.sync_api import sync_playwright  # pyright: ignore[reportMissingImports]

    with sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=find_chromium(""), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 620})
        page.goto(f"{given.address.rstrip('/')}/#/run/{given.run.name}/tree/{given.tree}?node=8")
        page.wait_for_selector(".conversation")
        page.screenshot(path=PICTURE)
        browser.close()


if __name__ == "__main__":
    main()
