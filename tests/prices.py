"""A tree of two conversations with a tool, in the chat template of any family."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.explore.stage import runner

from bough.context import ToolCalls
from bough.engine import Request, Scripted
from bough.env import InProcessHost, tools_env
from bough.explore import Chains
from bough.policy.chat import ChatRenderer
from bough.rollout import Limits
from bough.tree import Action, ToolCall, Tree

PRICES = {"tea": "3 euros", "milk": "2 euros"}
LIMITS = Limits(turns=6)


def find(item: str) -> str:
    """Finds the price of an item."""
    return PRICES[item]


def rows() -> list[dict[str, Any]]:
    return [{"prompt": f"What does tea cost? {n}"} for n in range(3)]


def right(_: Mapping[str, Any], __: Mapping[str, Any], answer: str) -> bool:
    return answer == "3 euros"


def finding(*items: str) -> Action:
    return Action(calls=tuple(ToolCall(name="find", arguments={"item": item}) for item in items))


TEA, MILK, RIGHT, WRONG = finding("tea"), finding("milk"), Action(text="3 euros"), Action(text="2 euros")


def played(renderer: ChatRenderer) -> Tree:
    """Two chains: tea, milk, and the price of milk; tea, and its price."""
    after_tea = iter([MILK, RIGHT])

    def reply(request: Request) -> tuple[int, ...]:
        results = renderer.verbatim(request.prompt_tokens).partition("cost?")[2]
        if "2 euros" in results:
            return renderer.write(WRONG)
        return renderer.write(next(after_tea) if "3 euros" in results else TEA)

    env = tools_env(tools=[find], tasks=rows, reward=right)
    place = runner(Scripted(script=reply, context_tokens=8192), InProcessHost(env=env), limits=LIMITS, max_tokens=256)
    place = replace(place, agent=replace(place.agent, renderer=renderer, parser=ToolCalls()))
    (tree,) = asyncio.run(place.run(Chains(n=2), env.tasks("train", 1, 0), seed=0)).trees
    return tree
