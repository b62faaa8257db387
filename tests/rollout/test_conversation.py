"""Episodes with messages and tools, from the environment to the tree."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import pytest
from tests.explore.stage import runner
from tests.policy import families

from bough.context import ToolCalls
from bough.engine import Scripted
from bough.env import Branching, Env, InProcessHost, Oracle, Split, State, Step, check_call
from bough.env.env import env_gives
from bough.explore import Chains, Demonstration
from bough.needs import CALLS, CALLS_TAKEN, Need
from bough.policy.calls import Hermes
from bough.policy.chat import ChatRenderer
from bough.rollout import RolloutRunner
from bough.store import read_trees, write_trees
from bough.tree import (
    Action,
    BadCall,
    Kind,
    Message,
    Outcome,
    Rewarded,
    Task,
    Tool,
    ToolCall,
    Tree,
    action_in,
    calls_in,
    messages_in,
    openai_messages,
    tools_at,
)

FIND = Tool(
    name="find",
    description="Finds an item.",
    schema={"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]},
)
TASK = Task(id="t")
PLAN = (Action(calls=(ToolCall(name="find", arguments={"item": "tea"}),)), Action(text="3"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Find the price of tea, and say it."""

    needs: ClassVar[frozenset[Need]] = frozenset({CALLS})
    branching: Branching = Branching.COPY
    instructions: str = "Answer."

    def tasks(self, split: Split, count: int, seed: int) -> list[Task]:
        return [Task(id=f"{split}-{at}", seed=seed) for at in range(count)]

    def start(self, task: Task) -> State:
        del task
        return State(observation=(Message(role="user", content="Tea?"),), key="0", value=0, tools=(FIND,))

    def step(self, state: State, action: Action) -> Step:
        if not action.calls:
            return Step(state=state, outcome=Outcome.TERMINATED, success=action.text == "3")
        problems = [check_call(call, state.tools) for call in action.calls]
        ids = [call.call_id if isinstance(call, ToolCall) else "" for call in action.calls]
        results = tuple(
            Message(role="tool", content=problem or "3 euros", call_id=call_id)
            for problem, call_id in zip(problems, ids, strict=True)
        )
        after = State(observation=results, key="1", value=1, tools=(FIND,))
        return Step(state=after, valid=not any(problems))

    def plan(self, state: State) -> tuple[Action, ...]:
        return PLAN[int(bool(state.value)) :]


@pytest.fixture(scope="module")
def renderer() -> ChatRenderer:
    return ChatRenderer(families.tokenizer("qwen2.5"), template={})


def played(renderer: ChatRenderer, *texts: str) -> RolloutRunner:
    replies = [renderer.write(text) for text in texts]
    said = iter(replies)
    engine = Scripted(script=lambda _: next(said), context_tokens=4096)
    place = runner(engine, InProcessHost(env=Prices()), max_tokens=256)
    return replace(place, agent=replace(place.agent, renderer=renderer, parser=ToolCalls()))


def only(place: RolloutRunner, explorer: Chains | Demonstration, task: Task = TASK) -> Tree:
    (tree,) = asyncio.run(place.run(explorer, [task], seed=0)).trees
    return tree


GOOD = '<tool_call>{"name": "find", "arguments": {"item": "tea"}}</tool_call>'
WRONG = '<tool_call>{"name": "find", "arguments": {"item": 1}}</tool_call>'
BAD = "<tool_call>find tea</tool_call>"


def test_calls_reach_the_environment_and_results_the_model(renderer: ChatRenderer, tmp_path: Path) -> None:
    tree = only(played(renderer, f"Look. {GOOD}{WRONG}", BAD, "3"), Chains(n=1))
    acts = [node for node in range(tree.nodes) if tree.kind[node] == Kind.ACTION]
    assert tree.success[-1] == 1
    assert [bool(tree.valid[node]) for node in acts] == [False, False, True]
    assert [bool(tree.well_formed[node]) for node in acts] == [True, False, True]
    first, second, last = (action_in(tree.info[node]) for node in acts)
    assert first.text == "Look."
    assert first.calls[0] == ToolCall(name="find", arguments={"item": "tea"})
    assert isinstance(second.calls[0], BadCall)
    assert last == Action(text="3")
    results = messages_in(tree.info[acts[0] + 1])
    assert [each.role for each in results] == ["tool", "tool"]
    assert results[0].content == "3 euros"
    assert results[1].content == "got wrong arguments of find: arguments['item']: 1 is not of type 'string'"
    assert "no JSON" in messages_in(tree.info[acts[1] + 1])[0].content
    assert tools_at(tree, acts[2]) == (FIND,)
    text = renderer.verbatim(tree.token.tolist())
    assert text.count("<|im_start|>user\n<tool_response>\n3 euros\n</tool_response>\n<tool_response>\ngot wrong") == 1
    write_trees(tmp_path / "trees.safetensors", [Rewarded(tree=tree, channels={})])
    assert read_trees(tmp_path / "trees.safetensors")[0].tree.equals(tree)
    assert set(tree.kind.tolist()) == {Kind.PROMPT, Kind.ACTION, Kind.OBSERVATION}


def test_an_oracles_actions_are_written_in_the_models_form(renderer: ChatRenderer) -> None:
    tree = only(played(renderer), Demonstration())
    text = renderer.verbatim(tree.tokens_of(1).tolist())
    assert text == '<tool_call>\n{"name": "find", "arguments": {"item": "tea"}}\n</tool_call><|im_end|>'
    assert calls_in(tree.info[1]) == PLAN[0].calls
    assert tree.success[-1] == 1


def test_a_task_can_start_after_calls(renderer: ChatRenderer) -> None:
    task = Task(id="t").after(PLAN[:1])
    assert Task.read(task.record()) == task
    tree = only(played(renderer, "3"), Chains(n=1), task)
    assert tree.success[-1] == 1
    assert calls_in(tree.info[1]) == PLAN[0].calls


def test_the_needs_of_environment_and_parser_meet() -> None:
    assert isinstance(Prices(), Env)
    assert isinstance(Prices(), Oracle)
    assert CALLS_TAKEN in env_gives(Prices())
    assert ToolCalls().needs == {CALLS_TAKEN}
    assert CALLS in ToolCalls.gives


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"item": "tea"}, ""),
        ({}, "got wrong arguments of find: 'item' is a required property"),
        ({"item": [1]}, "got wrong arguments of find: arguments['item']: [1] is not of type 'string'"),
    ],
)
def test_arguments_are_checked(arguments: Mapping[str, object], problem: str) -> None:
    assert check_call(ToolCall(name="find", arguments=arguments), (FIND,)) == problem


def test_the_deepest_arguments_that_are_parsed_can_be_checked() -> None:
    tool = Tool(name="put", description="", schema={"type": "object", "properties": {"a": {"$ref": "#"}}})
    for levels, kind in ((60, ToolCall), (70, BadCall), (5000, BadCall)):
        arguments = '{"a": ' * levels + "{}" + "}" * levels
        text = f'<tool_call>{{"name": "put", "arguments": {arguments}}}</tool_call>'
        (call,) = Hermes().parse(text).calls
        assert type(call) is kind
        assert bool(check_call(call, (tool,))) == (kind is BadCall)


def test_an_unknown_tool_is_named() -> None:
    call = ToolCall(name="fly", arguments={})
    assert check_call(call, (FIND,)) == "got the tool 'fly'; need one of: find"
    assert check_call(call, ()) == "got the tool 'fly'; need one of: none: there are no tools now"
    with pytest.raises(ValueError, match="tool 'fly': got a schema that is no JSON schema"):
        check_call(call, (Tool(name="fly", description="", schema={"type": "bird"}),))


def test_openais_form_links_results_to_calls() -> None:
    calls = (ToolCall(name="find", arguments={"item": "tea"}), ToolCall(name="find", arguments={}, call_id="mine"))
    said = Message(role="assistant", content="", tool_calls=calls)
    results = Message(role="tool", content="3"), Message(role="tool", content="no", call_id="mine")
    first, *rest = openai_messages([said, *results, said, results[0]])
    assert first["tool_calls"][0] == {
        "id": "call_1",
        "type": "function",
        "function": {"name": "find", "arguments": '{"item": "tea"}'},
    }
    assert [row.get("tool_call_id") for row in rest] == ["call_1", "mine", None, "call_3"]
