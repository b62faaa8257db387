"""An agent whose first prompt differs between episodes."""

import os

from plain import chat, user


def agent(*_):
    chat([user(f"start {os.urandom(8).hex()}")])
    return 1
