# ruff: noqa: ARG001
"""An engine that acts and answers questions, and what a search made of it."""

import random
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from tests.explore.stage import STOP, grow, runner

from bough.engine import InjectedFault, Request, Scripted
from bough.rollout import Explorer, Limits
from bough.tree import Kind, Tree, path

Say = str | InjectedFault
ACTS = "{go: }"
"""How what the agent reads begins; everything else is a question."""


def talk(act: Callable[[str, random.Random], Say], answer: Callable[[str], Say]) -> Scripted:
    """Acts as `act` says of what it reads and the luck of the request; answers a question as `answer` says of it."""

    def script(request: Request) -> tuple[int, ...] | InjectedFault:
        read = "".join(chr(token) for token in request.prompt_tokens if token != STOP)
        said = act(read, random.Random(request.seed)) if read.startswith(ACTS) else answer(read)
        return said if isinstance(said, InjectedFault) else tuple(map(ord, said))

    return Scripted(script=script)


def questions(engine: Scripted) -> list[str]:
    """The questions that were asked, in order."""
    read = ["".join(chr(token) for token in each.prompt_tokens if token != STOP) for each in engine.requests]
    return [text for text in read if not text.startswith(ACTS)]


def search(engine: Scripted, explorer: Explorer, *, limits: Limits | None = None, **how: Any) -> Tree:
    """The tree that a search grows on the world of letters."""
    place = runner(engine, limits=limits or Limits(), max_tokens=200, **how)
    (tree,) = grow(place, explorer).trees
    return tree


def answer(tree: Tree) -> str:
    """The actions that lead to the answer."""
    (node,) = np.flatnonzero(tree.answer).tolist()
    return "".join(str(tree.info[step]["text"]) for step in path(tree, node) if tree.kind[step] == Kind.ACTION)


def actions(tree: Tree) -> dict[str, Any]:
    """The infos and columns of the actions that the search considered, by the actions on the way to them."""
    return {
        "".join(str(tree.info[step]["text"]) for step in path(tree, int(node)) if tree.kind[step] == Kind.ACTION): (
            {**tree.info[node], **{name: getattr(tree, name)[node] for name in ("source", "value", "rating", "visits")}}
        )
        for node in np.flatnonzero(tree.kind == Kind.ACTION)
        if "prior" in tree.info[node]
    }


def letter(read: str, luck: random.Random) -> str:
    """Any of two letters."""
    return luck.choice("ab")


def judgements(yes: Mapping[str, int]) -> tuple[Callable[[str], str], dict[str, int]]:
    """Answers to judgements and critiques, and how often each path was judged: the first `yes[path]` times "yes"."""
    asked: dict[str, int] = {}

    def say(read: str) -> str:
        if "what is wrong" in read:
            return "refine it"
        past = "".join(line[2] for line in read.splitlines() if line.startswith("> "))
        asked[past] = asked.get(past, 0) + 1
        return "yes" if asked[past] <= yes.get(past, 0) else "no"

    return say, asked
