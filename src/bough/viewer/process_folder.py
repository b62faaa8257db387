"""The working directory of the viewer's process, which its threads share."""

import threading

PROCESS_FOLDER = threading.Lock()
"""Held by who opens a run in the folder in which it began, or works with one that stays open there."""
