"""The model of a server as the agent of an evaluation."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.evaluate.chat_server import KEY, Answer, chat_server, keep_accounts, raw, say
from tests.explore.stage import Letters, grow, runner
from tests.forks import command
from tests.small import run as small
from tests.talk import Bough

import bough
from bough.ask import Query, Text
from bough.context import Full, Plain, Tagged, ToolCalls
from bough.engine import EngineFault, OpenAi, Sampling, Scripted
from bough.engine.messages import Messages
from bough.evaluate import evaluate, search
from bough.policies.server import server
from bough.roles import FrozenPolicy
from bough.roles.seat_models import model_agent
from bough.rollout import Agent, RoleModel, Rollout
from bough.search import BestOf
from bough.store import RunDirectory
from bough.train import start
from bough.tree import Tree, action_in, calls_in, messages_in

FEW = "evaluation.tasks.count=30"


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEDGER_KEY", KEY)


def rule(url: str, **settings: Any) -> OpenAi:
    return OpenAi(**({"model": "rule", "base_url": url, "key_env": "LEDGER_KEY", "retries": 0} | settings))


def texts(tree: Tree) -> list[str]:
    return [str(info.get("text", "")) for info in tree.info]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return start(small(), tmp_path_factory.mktemp("runs"), terminal=False)


@pytest.fixture(scope="module")
def served(trained: RunDirectory) -> Iterator[str]:
    with command("serve", trained.path, "--port", "0") as process:
        yield process.line().split()[-1]


@pytest.mark.parametrize("api", ["chat", "completions"])
def test_a_served_run_succeeds_on_the_tasks_on_which_it_succeeds_here(
    trained: RunDirectory, served: str, api: Any
) -> None:
    changes = ["evaluation.temperature=0", "evaluation.tasks.count=24"]
    here = evaluate(trained.path, changes=changes)
    there = bough.evaluate(trained.path, changes, policy=OpenAi(model="small", base_url=served, api=api))
    assert 0 < here.score.rate < 1
    assert there.score.successes == here.score.successes
    assert there.score.turns == here.score.turns
    assert (there.agent, there.step, here.agent) == ("small", None, "step 24")
    assert there.usage is not None
    assert there.usage.requests == there.score.actions.actions
    if api == "completions":
        assert [tree.token.tolist() for tree in there.score.trees] == [tree.token.tolist() for tree in here.score.trees]
    assert [texts(tree) for tree in there.score.trees] == [texts(tree) for tree in here.score.trees]


def test_a_server_that_calls_tools_by_rule_solves_every_task() -> None:
    with chat_server(keep_accounts) as (url, bodies):
        result = bough.evaluate(on="ledger", policy=rule(url), changes=[FEW])
    assert (result.score.rate, len(result.score.successes)) == (1.0, 30)
    assert str(result).startswith("rule: success 100.0% of 30 held-out tasks (95 % interval 88.6% to 100.0%), ")
    assert f"the server: {len(bodies)} requests, {10 * len(bodies):,} prompt tokens" in str(result)
    longest = max(bodies, key=lambda body: len(body["messages"]))["messages"]
    assert [row["role"] for row in longest[:3]] == ["system", "user", "assistant"]
    assert longest[2]["content"] == "I look up."
    tree = result.score.trees[0]
    action = next(node for node in range(tree.nodes) if calls_in(tree.info[node]))
    assert action_in(tree.info[action]).text == "I look up."
    results = messages_in(tree.info[action + 1])
    assert [each.role for each in results] == ["tool"] * len(calls_in(tree.info[action]))
    assert all(each.call_id for each in results)


def test_a_call_without_json_is_read_with_its_problem_and_can_be_mended() -> None:
    def clumsy(body: dict[str, Any]) -> Answer:
        if len(body["messages"]) == 2:
            good = keep_accounts(body)["tool_calls"]
            return {"content": "Look.", "tool_calls": [*raw("get", "{name: ann}")["tool_calls"], *good]}
        wrong = body["messages"][2]
        assert wrong["content"] == "Look.\nget({name: ann})"
        assert wrong["tool_calls"], "the calls with JSON are calls"
        (problem,) = [row["content"] for row in body["messages"][3:] if row["role"] == "user"]
        assert problem.startswith("error: got arguments that are no JSON")
        return keep_accounts(body)

    with chat_server(clumsy) as (url, _):
        result = bough.evaluate(on="ledger", policy=rule(url), changes=[FEW, "env.max_calls=12", "env.max_errors=none"])
    assert result.score.rate == 1.0
    assert result.score.actions.invalid == 30


@pytest.mark.parametrize("context", ["Full()", "Window(turns=1)"])
def test_results_of_calls_that_the_context_dropped_are_messages_of_the_user(context: str) -> None:
    def once(body: dict[str, Any]) -> Answer:
        roles = [row["role"] for row in body["messages"]]
        if context == "Full()" or (roles == ["system", "user"] and "pay " in body["messages"][1]["content"]):
            return keep_accounts(body)
        assert set(roles) == {"system", "user"}
        return say("done")

    with chat_server(once) as (url, _):
        result = bough.evaluate(on="ledger", policy=rule(url), changes=[FEW, f"context={context}"])
    assert not result.score.failures
    assert result.score.rate == (1.0 if context == "Full()" else 0.0)


def test_a_run_with_calls_served_by_bough_acts_as_here(tmp_path: Path) -> None:
    """Wherever its calls are well formed: a malformed one is text for a client."""
    few = ["warmup.demonstrations=64", "warmup.epochs=4", "warmup.learning_rate=1e-2", "warmup.batch_tokens=1024"]
    run = bough.train("grpo", [*few, "steps=0", "evaluation.tasks.count=12"], on="ledger", out=tmp_path, name="led")
    changes = ["evaluation.temperature=0"]
    here = bough.evaluate(run, changes).score.trees
    with command("serve", run.directory, "--port", "0") as process:
        url = process.line().split()[-1]
        there = bough.evaluate(run, changes, policy=OpenAi(model="led", base_url=url)).score.trees
    formed = [place for place, tree in enumerate(here) if not (tree.well_formed == 0).any()]
    assert sum(bool(calls_in(info)) for place in formed for info in here[place].info) > 3
    assert [texts(there[place]) for place in formed] == [texts(here[place]) for place in formed]


def test_a_server_that_is_not_there_a_wrong_key_and_an_unknown_model() -> None:
    with pytest.raises(EngineFault, match=r"http://127.0.0.1:9/v1: the connection broke .* check that the server runs"):
        bough.evaluate(on="ledger", policy=OpenAi(model="m", base_url="http://127.0.0.1:9/v1"))
    with chat_server(keep_accounts) as (url, bodies):
        with pytest.raises(EngineFault, match=r"status 401: Incorrect API key provided; set OpenAi.key_env"):
            bough.evaluate(on="ledger", policy=rule(url, key_env=None))
        with pytest.raises(EngineFault, match=r"got model 'big'; need one of: rule; check OpenAi\.model"):
            bough.evaluate(on="ledger", policy=rule(url, model="big"), changes=[FEW])
    assert not bodies


def test_the_command(bough: Bough, tmp_path: Path) -> None:
    with chat_server(keep_accounts) as (url, _):
        policy = f"OpenAi(model=rule, base_url='{url}', key_env=LEDGER_KEY)"
        missing = bough("eval", "--on", "ledger", "--policy", policy, FEW, folder=tmp_path).error(2)
        assert "got 'LEDGER_KEY', which is not set in the environment" in missing
        unset = policy.replace("LEDGER_KEY", "none")
        assert "status 401" in bough("eval", "--on", "ledger", "--policy", unset, FEW, folder=tmp_path).error(1)
    gone = bough(
        "eval", FEW, "--on", "ledger", "--policy", "OpenAi(model=m, base_url='http://127.0.0.1:9')", folder=tmp_path
    )
    assert "check that the server runs there" in gone.error(1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "got neither a run nor a world; need one of the two: a run directory, or --on"),
        (("runs/x", "--on", "ledger"), "got a run and a world"),
        (("--on", "ledger"), "got a world without a policy; need --policy"),
        (("runs/x", "--step", "1", "--policy", "smollm2"), "got a checkpoint and another policy"),
        (("--on", "ledger", "--policy", "OpenAi(model=m, url='x')"), "did you mean 'base_url'?"),
        (("--on", "nowhere", "--policy", "OpenAi(model=m, base_url='http://x')"), "nowhere"),
    ],
)
def test_wrong_commands(bough: Bough, tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    assert words in bough("eval", *arguments, folder=tmp_path).error(2)


def test_the_preset_leaves_room_for_text() -> None:
    world = small().world
    engine = OpenAi(model="m", base_url="http://x/v1")
    assert server(world, engine=engine).sampling.max_tokens == 4096
    tokens = server(world, engine=OpenAi(model="m", base_url="http://x/v1", api="completions"))
    assert tokens.sampling == world.sampling
    assert re.search("OpenAi", repr(tokens.execution.engine))


def test_an_engine_in_the_run_alone_leaves_room_for_text_too() -> None:
    """The world's limit of an action counts tokens of its own policy; those of the chat are bytes."""
    run = small()
    assert run.world.sampling.max_tokens < len("a sentence of a model that talks")
    with chat_server(lambda _: say("a sentence of a model that talks")) as (url, bodies):
        found = search(run.replace(engine=rule(url), explorer=BestOf(n=1)), [FEW])
    assert (found.actions.cut, found.actions.actions > 0) == (0, True)
    assert {body["max_tokens"] for body in bodies} == {4096}


def test_a_server_in_a_seat_or_a_role_has_neither_the_form_nor_the_limit_of_the_policy() -> None:
    agent = Agent(
        engine=Scripted(script=()),
        renderer=Letters(),
        context=Full(),
        parser=Tagged(),
        sampling=Sampling(max_tokens=8),
    )
    talks = RoleModel(engine=Scripted(script=()), renderer=Messages())
    frozen = RoleModel(engine=Scripted(script=()), renderer=Letters())
    served = model_agent(agent, None, talks)
    assert (served.parser, served.sampling.max_tokens) == (Plain(), 4096)
    assert model_agent(replace(agent, parser=ToolCalls()), None, talks).parser == ToolCalls()
    assert model_agent(agent, None, frozen).sampling == agent.sampling
    own = FrozenPolicy(model=rule("http://x/v1"), parser=Tagged(tag="say"), sampling=Sampling(max_tokens=64))
    assert model_agent(agent, own, talks).parser == Tagged(tag="say")
    assert model_agent(agent, own, talks).sampling.max_tokens == 64
    engine = Scripted(script=lambda _: (65, 258))

    async def asks(rollout: Rollout) -> None:
        await rollout.root()
        await rollout.ask(Query(prompt="how good?", read=Text(), role="judge"))

    place = runner(Scripted(script=()))
    models = {"judge": RoleModel(engine=engine, renderer=Messages())}
    grow(replace(place, agent=replace(place.agent, models=models)), asks)
    assert engine.requests[0].sampling.max_tokens == 4096
