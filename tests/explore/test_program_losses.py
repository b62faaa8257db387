"""Agents on OpenAI's clients, unchanged: training on their episodes equals training on the same episodes in Bough."""

import asyncio
import json
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.serve.dialects.table import LineChat
from tests.serve.wire import ByteChat

from bough.batch import pack
from bough.context import Full, Parsed, Renderer
from bough.credit import Grpo
from bough.engine import Completion, Engine, Local, Request, Sampling, Scripted
from bough.env import Branching, Env, InProcessHost, ProgramTasks, State, Step
from bough.explore import Chains, Program
from bough.learner import Learner, Optimizer
from bough.objective import Normalizer, PpoClip
from bough.policy import Tiny
from bough.policy.policy import Policy
from bough.reward import EnvReward, compute_rewards
from bough.rollout import Agent, Deadlines, Explorer, Limits, RolloutRunner
from bough.tree import Action, Kind, Outcome, Task, Tool, Tree, counted, groups
from bough.tree.records import read_tool

AGENTS = Path(__file__).with_name("agents")
TASKS = [Task(id=colour, data={"not": colour}) for colour in ("red", "blue")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Colours:
    """The conversation of the agents, as an environment."""

    tools: tuple[Tool, ...]
    counts: bool
    branching = Branching.COPY
    instructions = "Name a colour."

    def tasks(self, *_: object) -> Sequence[Task]:
        return TASKS

    def start(self, task: Task) -> State:
        return State(observation=f"Not {task.data['not']}.", key="", value=(), tools=self.tools)

    def step(self, state: State, action: str | Action) -> Step:
        assert isinstance(action, str)
        said = (*state.value, action)
        text = f"{len(action)} letters." if self.counts else "And another."
        after = State(observation=text, key="", value=said, tools=self.tools)
        if len(said) < 2:
            return Step(state=after)
        reward = sum(len(set(each)) for each in said) / 50
        return Step(state=after, outcome=Outcome.TERMINATED, reward=reward, success=reward >= 1)


@dataclass
class Taped:
    """An engine whose completions are recorded by prompt, and replayed in the order of their recording."""

    inner: Engine
    tape: dict[tuple[int, ...], deque[Completion]] = field(default_factory=lambda: defaultdict(deque))
    replays: bool = False

    @property
    def context_tokens(self) -> int:
        return self.inner.context_tokens

    async def generate(self, request: Request) -> Completion:
        if self.replays:
            return self.tape[request.prompt_tokens].popleft()
        completion = await self.inner.generate(request)
        self.tape[request.prompt_tokens].append(completion)
        return completion


def whole(text: str) -> Parsed:
    """A parser: the whole text is the action."""
    return Parsed(action=text.strip(), well_formed=True)


def tiny() -> Policy:
    settings = Tiny(layers=1, width=32, heads=2, vocab_tokens=300, context_tokens=2048, dtype="float64")
    return settings.build(["red green blue letters"])


def runner(env: Env, engine: object, renderer: Renderer, max_tokens: int = 8) -> RolloutRunner:
    agent = Agent(
        engine=engine,  # type: ignore[arg-type]
        renderer=renderer,
        context=Full(),
        parser=whole,
        sampling=Sampling(max_tokens=max_tokens),
    )
    return RolloutRunner(
        agent=agent,
        host=InProcessHost(env=env),
        instructions=env.instructions,
        limits=Limits(),
        deadlines=Deadlines(),
    )


def grow(explorer: Explorer, env: Env, engine: object, renderer: Renderer, max_tokens: int = 8) -> list[Tree]:
    return list(asyncio.run(runner(env, engine, renderer, max_tokens).run(explorer, TASKS, seed=0)).trees)


def learn(trees: Sequence[Tree]) -> tuple[dict[str, float], dict[str, torch.Tensor]]:
    """The metrics of one update, and the weights after it."""
    policy = tiny()
    rewarded = [each for group in groups(trees) for each in compute_rewards(group, (EnvReward(),))]
    learner = Learner(policy, Optimizer(learning_rate=1e-2), total_updates=1, temperature=1.0)
    metrics = learner.learn(pack(Grpo()(rewarded)), PpoClip(), Normalizer(), seed=0)
    return metrics, {name: weight.clone() for name, weight in policy.weights().items()}


@pytest.mark.parametrize("name", ["client", "framework"])
def test_training_an_agent_equals_training_on_its_episodes(name: str) -> None:
    policy = tiny()
    engine = Taped(Local(slots=32).build(policy))
    program = Program(agent=f"{AGENTS / f'{name}.py'}:agent", n=3, retries=0)
    trees = grow(program, ProgramTasks(), engine, policy.renderer)
    assert [len(counted(tree)) for tree in trees] == [3, 3]
    assert [tree.info[0].get("tools") is not None for tree in trees] == [name == "framework"] * 2

    engine.replays = True
    tools = tuple(read_tool(each) for each in trees[0].info[0].get("tools", ()))  # type: ignore[union-attr]
    own = grow(Chains(n=3), Colours(tools=tools, counts=name == "client"), engine, policy.renderer)
    assert not any(engine.tape.values()), "every recorded completion is replayed"
    metrics, weights = learn(trees)
    expected, trained = learn(own)
    assert metrics["optimizer/gradient_norm"] > 1e-3
    assert abs(metrics["loss/total"] - expected["loss/total"]) < 1e-6
    assert abs(metrics["policy/gap"]) < 1e-4
    assert abs(metrics["optimizer/gradient_norm"] - expected["optimizer/gradient_norm"]) < 1e-6
    assert max(float((weights[key] - trained[key]).abs().max()) for key in weights) < 1e-6


def test_the_quickstart_of_a_framework_calls_its_tool() -> None:
    call = '{"name": "look", "arguments": {"colour": "red"}}'

    def script(request: Request) -> Sequence[int]:
        return ByteChat().write("green" if "no red here" in ByteChat().text(request.prompt_tokens) else call)

    agent = f"{AGENTS / 'framework.py'}:quickstart"
    program = Program(agent=agent, n=1, retries=0)
    tree = grow(program, ProgramTasks(), Scripted(script=script), ByteChat(), max_tokens=64)[0]
    text = ByteChat().text(tree.token.tolist())
    assert text == f"lookName a colour.Not red.{call}no red heregreenAnd another.green"
    assert len(counted(tree)) == 1
    assert Kind.EDIT not in tree.kind


DIALECTS = ("chat", "responses", "responses_by_id", "messages")


def test_the_same_episode_has_the_same_tree_and_loss_in_each_dialect() -> None:
    def script(request: Request) -> Sequence[int]:
        """Two calls first, then answers, with thinking before all of them; they depend on the seed."""
        word = ("tan", "blue", "ochre", "purple", "turquoise")[request.seed % 5]
        calls = [json.dumps({"name": "look", "arguments": {"colour": each}}) for each in (word, "red")]
        read = LineChat().text(request.prompt_tokens)
        said = word if "here" in read else "\n".join(["Let me see.", *calls])
        return LineChat().write(f"<think>\nhm {word}\n</think>\n\n{said}")

    async def main() -> list[Tree]:
        program = Program(agent=f"{AGENTS / 'dialects.py'}:agent", n=2, retries=0)
        engine = Scripted(script=script)
        grown = (
            runner(ProgramTasks(), engine, LineChat(), max_tokens=200).run(
                program, [Task(id="red", data={"dialect": name})], seed=0
            )
            for name in DIALECTS
        )
        return [each.trees[0] for each in await asyncio.gather(*grown)]

    tree, *others = asyncio.run(main())
    assert [Outcome(tree.outcome[leaf]) for leaf in counted(tree)] == [Outcome.TERMINATED] * 2
    assert Kind.EDIT not in tree.kind
    assert tree.info[0]["tools"] == others[0].info[0]["tools"]
    credited = Grpo()(compute_rewards([tree], (EnvReward(),)))[0]
    assert abs(credited.advantage).max() > 0.1
    expected, weights = learn([tree])
    for name, other in zip(DIALECTS[1:], others, strict=True):
        for column in ("parent", "kind", "token", "logprob", "outcome", "success", "env_reward"):
            np.testing.assert_array_equal(getattr(other, column), getattr(tree, column), err_msg=f"{name} {column}")
        np.testing.assert_array_equal(Grpo()(compute_rewards([other], (EnvReward(),)))[0].advantage, credited.advantage)
        metrics, trained = learn([other])
        assert abs(metrics["loss/total"] - expected["loss/total"]) < 1e-6
        assert max(float((weights[key] - trained[key]).abs().max()) for key in weights) < 1e-6
