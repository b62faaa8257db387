"""Splits by instance, by template, or by app (arXiv 2603.07432)."""

from functools import cache
from typing import Literal, TypeAlias

from bough.env.env import Split
from bough.env.splits import content_hash, split_of
from bough.worlds.screens.catalogue import KINDS, templates_of
from bough.worlds.screens.part import Request

Level: TypeAlias = Literal["instance", "template", "app"]
"""What no two splits share: requests with their parameters; templates of an app; apps."""

HELD_OUT = 3
"""Number of kinds of apps in each of dev and test, at level "app"."""


@cache
def kinds_of(level: Level, split: Split) -> tuple[str, ...]:
    """The kinds of apps that may be installed in a split: all, or a part of them at level "app"."""
    if level != "app":
        return tuple(KINDS)
    ranked = sorted(KINDS, key=lambda kind: content_hash(f"app {kind}"))
    chosen = {"test": ranked[:HELD_OUT], "dev": ranked[HELD_OUT : 2 * HELD_OUT], "train": ranked[2 * HELD_OUT :]}
    return tuple(chosen[split])


@cache
def templates_in(level: Level, split: Split, kind: str) -> tuple[str, ...]:
    """The templates of a kind of app in a split.

    At level "template" one template of each kind is in dev and one in test, so every app occurs in every split.
    """
    templates = templates_of(kind)
    if level != "template":
        return templates
    ranked = sorted(templates, key=lambda template: content_hash(f"template {kind} {template}"))
    return tuple({"test": ranked[:1], "dev": ranked[1:2], "train": ranked[2:]}[split])


def is_in(level: Level, split: Split, app: str, part: str, request: Request) -> bool:
    """Whether a request may occur in the tasks of a split."""
    if level == "instance":
        return split_of("\n".join((app, part, *request))) == split
    return app in kinds_of(level, split) and request[0] in templates_in(level, split, app)
