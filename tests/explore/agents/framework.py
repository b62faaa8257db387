"""An agent on the framework openai-agents, with a tool."""

from agents import Agent, OpenAIChatCompletionsModel, RunConfig, Runner, function_tool, set_default_openai_client
from openai import AsyncOpenAI


@function_tool
def look(colour: str) -> str:
    """Look for a colour."""
    return f"no {colour} here"


async def agent(task, settings):
    """On chat completions; the framework takes no response that was cut off."""
    model = OpenAIChatCompletionsModel(model="gpt-4o", openai_client=AsyncOpenAI(**settings, max_retries=0))
    return await painted(task, model=model)


async def quickstart(task, settings):
    """On the framework's default model, by the address and the key of the environment."""
    del settings
    set_default_openai_client(AsyncOpenAI(max_retries=0), use_for_tracing=False)
    return await painted(task)


async def painted(task, **settings):
    helper = Agent(name="painter", instructions="Name a colour.", tools=[look], **settings)
    quiet = RunConfig(tracing_disabled=True)
    first = await Runner.run(helper, f"Not {task['data']['not']}.", run_config=quiet)
    following = [*first.to_input_list(), {"role": "user", "content": "And another."}]
    second = await Runner.run(helper, following, run_config=quiet)
    return sum(len(set(each.final_output.strip())) for each in (first, second)) / 50
