"""Name the programs that worlds need and this machine lacks, with how to get them. Their tests are skipped."""

import os
import shutil

from bough.env.browser.chromium import NAMES as BROWSERS

PROGRAMS = {
    "ScienceWorld": (("java",), "apt-get install default-jre-headless"),
    "MiniWoB++": ((*BROWSERS, os.environ.get("BOUGH_CHROMIUM", "")), "apt-get install chromium"),
    "the sandbox of code": (("bwrap",), "apt-get install bubblewrap"),
}
"""By what needs them: names of which one is enough, and the command for Debian and Ubuntu."""


def missing() -> list[str]:
    """One line for each program that is not on the path."""
    return [
        f"{world}: {names[0]} is missing, so its tests are skipped; do: {command}"
        for world, (names, command) in PROGRAMS.items()
        if not any(map(shutil.which, names))
    ]


if __name__ == "__main__":
    print("\n".join(missing()) or "Java, Chromium and bubblewrap are here.")
