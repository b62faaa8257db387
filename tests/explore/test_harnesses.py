"""Agents of other frameworks, unchanged: three steps on their episodes equal three steps on the same ones in Bough."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch
from tests.explore.test_program import kinds
from tests.explore.test_program_losses import Taped, whole
from tests.missing import need

from bough.batch import pack
from bough.context import Full, Window
from bough.credit import Grpo
from bough.engine import Engine, Request, Sampling, Scripted
from bough.env import Branching, Env, InProcessHost, ProgramTasks, State, Step
from bough.explore import Chains, Program
from bough.learner import Learner, Optimizer
from bough.objective import Normalizer, PpoClip
from bough.policy import Tiny
from bough.policy.policy import Policy
from bough.reward import EnvReward, compute_rewards
from bough.rollout import Agent, Deadlines, Explorer, Limits, RolloutRunner
from bough.tree import Action, Kind, Message, Outcome, Task, Tool, ToolCall, Tree, counted, groups, path
from bough.tree.records import read_message, read_tool

need("pydantic_ai", "langchain_openai", "minisweagent", "smolagents")

FOLDER = Path(__file__).parents[2] / "examples" / "harnesses"
TASKS = [Task(id=word, data={"word": word}) for word in ("bough", "sapling")]
STEPS = 3
SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo"
PROSE = (FOLDER.parents[1] / "docs" / "concepts.md").read_text()


@dataclass(frozen=True, kw_only=True)
class Harness:
    """A framework.

    Attributes:
        name: The file of its agent, without "_agent.py".
        first: The first call of the policy.
        last: The name and the argument of the call that ends an episode; None where a text does.
        path: The kinds of the nodes of an episode with a call and an end.
    """

    name: str
    first: tuple[str, str] = ("count_letters", "word")
    last: tuple[str, str] | None = None
    path: str = "PAOAO"


HARNESSES = (
    Harness(name="pydantic_ai"),
    Harness(name="openai_agents"),
    Harness(name="langgraph"),
    Harness(name="anthropic"),
    # It writes the calls into the text of its history.
    Harness(name="smolagents", last=("final_answer", "answer"), path="PAEAO"),
    Harness(name="mini_swe", first=("bash", "command"), last=("bash", "command")),
)


@dataclass(kw_only=True)
class Played:
    """The conversations of trees, as an environment.

    Attributes:
        instructions: The system prompt.
        tools: The tools.
        messages: The messages after the actions of an episode so far, by its task and their texts.
        rewards: The rewards of whole episodes.
    """

    instructions: str = ""
    tools: tuple[Tool, ...] = ()
    messages: dict[tuple[str, ...], tuple[Message, ...]] = field(default_factory=dict)
    rewards: dict[tuple[str, ...], float] = field(default_factory=dict)
    branching = Branching.COPY

    def tasks(self, *_: object) -> Sequence[Task]:
        return TASKS

    def start(self, task: Task) -> State:
        key = (task.id,)
        return State(observation=self.messages[key], key="", value=key, tools=self.tools)

    def step(self, state: State, action: str | Action) -> Step:
        key = (*state.value, str(action))
        if key in self.rewards:
            reward = self.rewards[key]
            end = State(observation="", key="", value=key, tools=self.tools)
            return Step(state=end, outcome=Outcome.TERMINATED, reward=reward, success=reward >= 1)
        return Step(state=State(observation=self.messages[key], key="", value=key, tools=self.tools))


def played(trees: Sequence[Tree]) -> Played:
    """The environment of the conversations of trees."""
    env = Played(tools=tuple(read_tool(each) for each in trees[0].info[0]["tools"]))  # type: ignore[union-attr]
    for tree in trees:
        for leaf in counted(tree).tolist():
            key = (tree.task.id,)
            walk = path(tree, leaf).tolist()
            for node in walk[:-1]:
                if tree.kind[node] == Kind.ACTION:
                    key = (*key, str(tree.info[node]["text"]).strip())
                    continue
                told = [read_message(each) for each in tree.info[node]["messages"]]  # type: ignore[union-attr]
                if told[0].role == "system":
                    env.instructions = told.pop(0).content
                env.messages[key] = tuple(told)
            env.rewards[key] = float(tree.env_reward[walk].sum())
    return env


def policy() -> Policy:
    settings = Tiny(layers=1, width=32, heads=2, vocab_tokens=2000, context_tokens=8192, dtype="float64")
    return settings.build([PROSE])


def scripted(harness: Harness, own: Policy) -> Scripted:
    """A policy that calls the tool, and then ends with the right number, or another one; by the seed."""
    write, text = own.renderer.write, own.renderer.text

    def script(request: Request) -> Sequence[int]:
        read = text(request.prompt_tokens)
        word = read.partition("How many letters has ")[2].partition("?")[0]
        said = f"{len(word) if request.seed % 3 else 'no'} letters {request.seed % 5}"
        tool, argument = harness.first
        if str(len(word)) not in read.rpartition(word)[2]:
            value = f"printf {word} | wc -c" if tool == "bash" else word
            return write(Action(calls=(ToolCall(name=tool, arguments={argument: value}),)))
        if harness.last is None:
            return write(said)
        tool, argument = harness.last
        value = f"{SUBMIT} {said}" if tool == "bash" else said
        return write(Action(calls=(ToolCall(name=tool, arguments={argument: value}),)))

    return Scripted(script=script, context_tokens=8192)


def grow(
    harness: Harness, own: Policy, explorer: Explorer, envs: Sequence[Env], engines: Sequence[Engine]
) -> list[list[Tree]]:
    """The trees of the tasks in each environment, with an engine and a seed of its own."""

    def runner(env: Env, engine: Engine) -> RolloutRunner:
        agent = Agent(
            engine=engine,
            renderer=own.renderer,
            context=Window(turns=1) if "E" in harness.path else Full(),
            parser=whole,
            sampling=Sampling(max_tokens=200),
        )
        return RolloutRunner(
            agent=agent,
            host=InProcessHost(env=env),
            instructions=env.instructions,
            limits=Limits(turns=6),
            deadlines=Deadlines(),
        )

    async def main() -> list[list[Tree]]:
        pairs = enumerate(zip(envs, engines, strict=True))
        grown = (runner(*each).run(explorer, TASKS, seed=seed) for seed, each in pairs)
        return [list(each.trees) for each in await asyncio.gather(*grown)]

    return asyncio.run(main())


def learn(steps: Sequence[Sequence[Tree]]) -> tuple[list[float], Mapping[str, torch.Tensor]]:
    """The loss of each step, and the weights after them."""
    own = policy()
    learner = Learner(own, Optimizer(learning_rate=1e-2), total_updates=len(steps), temperature=1.0)
    losses: list[float] = []
    for seed, trees in enumerate(steps):
        rewarded = [each for group in groups(trees) for each in compute_rewards(group, (EnvReward(),))]
        metrics = learner.learn(pack(Grpo()(rewarded)), PpoClip(), Normalizer(), seed=seed)
        assert metrics["optimizer/gradient_norm"] > 0
        losses.append(metrics["loss/total"])
    return losses, {name: weight.clone() for name, weight in own.weights().items()}


@pytest.mark.parametrize("harness", HARNESSES, ids=lambda harness: harness.name)
def test_three_steps_equal_those_on_the_same_episodes(harness: Harness) -> None:
    file, reward = FOLDER / f"{harness.name}_agent.py", f"{FOLDER / 'reward.py'}:reward"
    own = policy()
    engines = [Taped(scripted(harness, own)) for _ in range(STEPS)]
    program = Program(agent=f"{file}:agent", n=3, retries=0, reward=reward)
    steps = grow(harness, own, program, [ProgramTasks()] * STEPS, engines)
    for tree in (tree for trees in steps for tree in trees):
        faults = [info["fault"] for info in tree.info if "fault" in info]
        assert (kinds(tree), faults) == ([harness.path] * 3, [])
        assert any("[" in str(info.get("text")) for info in tree.info), "the policy calls a tool"
    for engine in engines:
        engine.replays = True
    again = grow(harness, own, Chains(n=3), [played(trees) for trees in steps], engines)
    assert not any(engine.tape[prompt] for engine in engines for prompt in engine.tape), "all completions are replayed"
    losses, weights = learn(steps)
    expected, trained = learn(again)
    assert max(abs(one - other) for one, other in zip(losses, expected, strict=True)) < 1e-6
    assert max(float((weights[name] - trained[name]).abs().max()) for name in weights) < 1e-6


@pytest.mark.parametrize("harness", HARNESSES, ids=lambda harness: harness.name)
def test_a_command_has_the_episodes_of_its_function(harness: Harness) -> None:
    own = policy()
    command = f"{sys.executable} {FOLDER / f'{harness.name}_agent.py'}"
    program = Program(agent=command, n=1, retries=0, reward=f"{FOLDER / 'reward.py'}:reward")
    for tree in grow(harness, own, program, [ProgramTasks()], [scripted(harness, own)])[0]:
        assert kinds(tree) == [harness.path]
        assert float(tree.env_reward.sum()) in (0.25, 1.0)
