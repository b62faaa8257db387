"""An agent with a tool on the OpenAI Agents SDK."""

import asyncio
import json
import os

from agents import Agent, Runner, function_tool, set_tracing_disabled


@function_tool
def count_letters(word: str) -> int:
    """Count the letters of a word."""
    return len(word)


counter = Agent(name="counter", instructions="Count the letters of a word, with the tool.", tools=[count_letters])


async def agent(task: dict, settings: dict) -> str:
    """Ask the framework's default model; address and key are in the environment."""
    del settings
    # Traces would go to OpenAI.
    set_tracing_disabled(True)
    result = await Runner.run(counter, f"How many letters has {task['data']['word']}?")
    return result.final_output


if __name__ == "__main__":
    print(asyncio.run(agent(json.loads(os.environ["BOUGH_TASK"]), {})))
