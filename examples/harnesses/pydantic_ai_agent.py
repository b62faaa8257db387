"""An agent with a tool on Pydantic AI."""

import asyncio
import json
import os

from pydantic_ai import Agent

counter = Agent(instructions="Count the letters of a word, with the tool.")


@counter.tool_plain
def count_letters(word: str) -> int:
    """Count the letters of a word."""
    return len(word)


async def agent(task: dict, settings: dict) -> str:
    """Ask a model of OpenAI; address and key are in the environment."""
    del settings
    result = await counter.run(f"How many letters has {task['data']['word']}?", model="openai:gpt-5")
    return result.output


if __name__ == "__main__":
    print(asyncio.run(agent(json.loads(os.environ["BOUGH_TASK"]), {})))
