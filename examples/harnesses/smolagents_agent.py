"""An agent with a tool on smolagents.

Each answer is a call (`tool_choice`), which needs the extra `grammar`. The framework returns the calls as text, so each
prompt after the first is an `EDIT`.
"""

import json
import os

from smolagents import OpenAIModel, ToolCallingAgent, tool


@tool
def count_letters(word: str) -> int:
    """Count the letters of a word.

    Args:
        word: The word.
    """
    return len(word)


def agent(task: dict, settings: dict) -> str:
    """Ask a model of OpenAI; address and key are in the environment."""
    del settings
    model = OpenAIModel("gpt-5", api_base=os.environ["OPENAI_BASE_URL"], api_key=os.environ["OPENAI_API_KEY"])
    counter = ToolCallingAgent(tools=[count_letters], model=model, max_steps=3, verbosity_level=0)
    return str(counter.run(f"How many letters has {task['data']['word']}?"))


if __name__ == "__main__":
    print(agent(json.loads(os.environ["BOUGH_TASK"]), {}))
