"""An agent with a tool on LangGraph, with LangChain's client of OpenAI's API."""

import asyncio
import json
import os

from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent


def count_letters(word: str) -> int:
    """Count the letters of a word."""
    return len(word)


async def agent(task: dict, settings: dict) -> str:
    """Ask a model of OpenAI; address and key are in the environment."""
    del settings
    model = ChatOpenAI(model="gpt-5")
    counter = create_react_agent(model, [count_letters], prompt="Count the letters of a word, with the tool.")
    asked = {"role": "user", "content": f"How many letters has {task['data']['word']}?"}
    result = await counter.ainvoke({"messages": [asked]})
    return result["messages"][-1].content


if __name__ == "__main__":
    print(asyncio.run(agent(json.loads(os.environ["BOUGH_TASK"]), {})))
