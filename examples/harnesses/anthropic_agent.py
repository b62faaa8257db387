"""An agent with a tool on the tool runner of Anthropic's client."""

import asyncio
import json
import os

from anthropic import AsyncAnthropic, beta_async_tool


@beta_async_tool
async def count_letters(word: str) -> str:
    """Count the letters of a word."""
    return str(len(word))


async def agent(task: dict, settings: dict) -> str:
    """Ask a model of Anthropic; address and key are in the environment."""
    del settings
    runner = AsyncAnthropic().beta.messages.tool_runner(
        model="claude-sonnet-5",
        max_tokens=200,
        system="Count the letters of a word, with the tool.",
        tools=[count_letters],
        messages=[{"role": "user", "content": f"How many letters has {task['data']['word']}?"}],
    )
    last = await runner.until_done()
    return "".join(block.text for block in last.content if block.type == "text")


if __name__ == "__main__":
    print(asyncio.run(agent(json.loads(os.environ["BOUGH_TASK"]), {})))
