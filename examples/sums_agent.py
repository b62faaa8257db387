"""An agent for OpenAI's API. It imports nothing of Bough: `examples/program.py` trains its model."""

from openai import AsyncOpenAI


async def agent(task: dict, settings: dict) -> str:
    """Answer a question, with one hint after a wrong answer."""
    client = AsyncOpenAI(**settings)
    messages = [{"role": "user", "content": f"{task['data']['question']} = ?"}]
    answer = ""
    for _ in range(2):
        response = await client.chat.completions.create(model="any", messages=messages)
        answer = response.choices[0].message.content or ""
        if answer.strip() == str(task["data"]["answer"]):
            break
        messages += [response.choices[0].message, {"role": "user", "content": "No. Write one number."}]
    return answer


def reward(task: dict, result: str) -> float:
    """1 for the right number; up to 0.5 for the digits in another answer."""
    if result.strip() == str(task["data"]["answer"]):
        return 1.0
    return 0.5 * sum(character.isdigit() for character in result) / max(1, len(result))
