"""An agent on OpenAI's own client: two answers, with a hint in between."""

from openai import AsyncOpenAI


async def agent(task, settings):
    client = AsyncOpenAI(**settings, max_retries=0)
    messages = [
        {"role": "system", "content": "Name a colour."},
        {"role": "user", "content": f"Not {task['data']['not']}."},
    ]
    said = []
    for _ in range(2):
        answer = await client.chat.completions.create(model="gpt-4o", messages=messages, temperature=0.2)
        said.append((answer.choices[0].message.content or "").strip())
        messages += [answer.choices[0].message.to_dict(), {"role": "user", "content": f"{len(said[-1])} letters."}]
    return sum(len(set(text)) for text in said) / 50
