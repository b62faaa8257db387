"""Tests that need Chromium are skipped where the machine has none."""

from bough.env.browser.chromium import find_chromium


def chromium_problem() -> str:
    """Why this machine has no Chromium; "" when it has one."""
    try:
        find_chromium("")
    except ImportError as error:
        return str(error)
    return ""
