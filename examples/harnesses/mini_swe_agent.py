"""An agent with a shell on mini-swe-agent."""

import json
import os

from minisweagent.agents.default import DefaultAgent
from minisweagent.environments.local import LocalEnvironment
from minisweagent.models.litellm_model import LitellmModel

SYSTEM = "Use the shell. Write COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT in the first line of the last output."


def agent(task: dict, settings: dict) -> str:
    """Ask a model of OpenAI; address and key are in the environment."""
    del settings
    # A trained model has no price.
    model = LitellmModel(model_name="openai/gpt-5", cost_tracking="ignore_errors")
    solver = DefaultAgent(
        model, LocalEnvironment(), system_template=SYSTEM, instance_template="{{task}}", step_limit=4, output_path=None
    )
    return solver.run(f"How many letters has {task['data']['word']}?")["submission"]


if __name__ == "__main__":
    print(agent(json.loads(os.environ["BOUGH_TASK"]), {}))
