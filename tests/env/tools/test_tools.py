"""Python functions as tools."""

# ruff: noqa: ARG001

import asyncio
import json
import pickle
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from functools import partial
from pathlib import Path
from random import Random
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from bough.config import dump, load
from bough.env import (
    Branching,
    Database,
    EnvFault,
    InProcessHost,
    Replay,
    State,
    Step,
    ToolError,
    ToolsEnv,
    Workers,
    call,
    check_call,
    stateless,
    tools_env,
)
from bough.env.rows import RowTasks
from bough.env.splits import split_of
from bough.env.tools.function_tool import function_tool
from bough.needs import CALLS, ORACLE
from bough.tree import Action, BadCall, Outcome, ToolCall, plain_text
from bough.usercode.address import address_of, find_function


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: int = 0


class Label(BaseModel):
    title: str
    at: Point


class Shop:
    """A state that can be copied."""

    def __init__(self, prices: Mapping[str, int]) -> None:
        self.prices, self.basket = dict(prices), list[str]()

    def add(self, good: str) -> int:
        self.basket.append(good)
        return len(self.basket)


class Locked(Shop):
    """A state that cannot be copied."""

    def __init__(self, prices: Mapping[str, int]) -> None:
        super().__init__(prices)
        self.lock = threading.Lock()


def price(shop: Shop, good: str) -> int:
    """Price of a good.

    Args:
        good: Its name.
    """
    return shop.prices[good]


def buy(shop: Shop, good: str, count: int = 1) -> None:
    """Buy a good."""
    if good not in shop.prices:
        raise ToolError(f"no {good} here")
    if count < 1:
        raise ValueError("count below 1")
    shop.basket += [good] * count


def on(shop: Shop, day: date) -> str:
    """Delivers on a day."""
    return f"{day:%A}"


def broken(shop: Shop) -> str:
    """Has a bug."""
    raise RuntimeError("a bug")


def opened(row: Mapping[str, Any]) -> Shop:
    return Shop(row["prices"])


class Till:
    """An object that all episodes share."""

    @stateless
    def paid(self, coins: int) -> int:
        return coins

    @staticmethod
    @stateless
    def change(coins: int) -> int:
        return coins - 3


TILL = Till()


def make_stock(least: int) -> Callable[[Shop, str], bool]:
    def in_stock(shop: Shop, good: str) -> bool:
        """Whether a good costs enough."""
        return shop.prices[good] >= least

    return in_stock


dear, cheap = make_stock(5), partial(make_stock, 1)


async def slow(shop: Shop, n: int) -> str:
    await asyncio.sleep(0)
    return f"{n} {threading.current_thread().name}"


async def fails(shop: Shop, leaves: bool = False) -> str:
    raise SystemExit if leaves else RuntimeError("a bug")


async def opens(row: Mapping[str, Any]) -> Shop:
    return Shop(row["prices"])


async def judged(shop: Shop, row: Mapping[str, Any], answer: str) -> bool:
    return shop.basket == ["tea"] and answer == "done"


def locked(row: Mapping[str, Any]) -> Locked:
    return Locked(row["prices"])


def copied(shop: Locked) -> Locked:
    other = Locked(shop.prices)
    other.basket = [*shop.basket]
    return other


def cheapest(shop: Shop, row: Mapping[str, Any]) -> bool:
    return shop.basket == [min(row["prices"], key=row["prices"].get)]


def said(shop: Shop, row: Mapping[str, Any], answer: str) -> float:
    return len(shop.basket) / 4 if answer == "done" else 0.0


def contents(shop: Shop, row: Mapping[str, Any]) -> str:
    return " ".join(shop.basket)


def route(shop: Shop, row: Mapping[str, Any]) -> list[Action | str] | None:
    if shop.basket:
        return ["done"] if cheapest(shop, row) else None
    best = min(shop.prices, key=shop.prices.__getitem__)
    return [*(call(price, good=good) for good in shop.prices), call(buy, good=best), "done"]


def rows() -> list[dict[str, Any]]:
    return [{"prompt": f"buy the cheapest, {n}", "prices": {"tea": 3, "oil": 1 + n, "rice": 9}} for n in range(60)]


def shop(**settings: Any) -> ToolsEnv:
    chosen: dict[str, Any] = {
        "tools": [price, buy, on, broken],
        "state": opened,
        "tasks": rows,
        "reward": cheapest,
        "plan": route,
        "key": contents,
    }
    return tools_env(**chosen | settings)  # type: ignore[return-value]


def first(env: ToolsEnv | Replay) -> State:
    return env.start(env.tasks("train", 1, 0)[0])


def texts(step: Step) -> list[str]:
    assert not isinstance(step.state.observation, str)
    assert all(message.role == "tool" for message in step.state.observation)
    return [message.content for message in step.state.observation]


def calls(*each: ToolCall | BadCall) -> Action:
    return Action(calls=each)


def made(name: str, call_id: str = "", **arguments: object) -> ToolCall:
    return ToolCall(name=name, arguments=arguments, call_id=call_id)


HINTS: dict[str, tuple[Any, Mapping[str, object], object, object]] = {
    # name: (hint, schema, a value that fits, one that does not)
    "str": (str, {"type": "string"}, "a", 1),
    "int": (int, {"type": "integer"}, 1, "1"),
    "int is no bool": (int, {"type": "integer"}, 1, True),
    "float": (float, {"type": "number"}, 1.5, "1.5"),
    "bool": (bool, {"type": "boolean"}, True, 1),
    "literal": (Literal["a", "b"], {"enum": ["a", "b"], "type": "string"}, "a", "c"),
    "list": (list[int], {"type": "array", "items": {"type": "integer"}}, [1], [1, "2"]),
    "dict": (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}, {"a": 1}, {"a": "b"}),
    "optional": (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}, None, "1"),
    "bounds": (Annotated[int, Field(ge=0)], {"type": "integer", "minimum": 0}, 0, -1),
    "enum": (Colour, {"$ref": "#/$defs/Colour"}, "red", "green"),
    "dataclass": (Point, {"$ref": "#/$defs/Point"}, {"x": 1}, {"y": 1}),
    "date and time": (datetime, {"type": "string", "format": "date-time"}, "2026-11-27T22:00:00", 5),
    "nested": (
        list[dict[str, Point | None]],
        {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": {"anyOf": [{"$ref": "#/$defs/Point"}, {"type": "null"}]},
            },
        },
        [{"a": {"x": 1}, "b": None}],
        [{"a": {"y": 1}}],
    ),
    "model": (Label, {"$ref": "#/$defs/Label"}, {"title": "t", "at": {"x": 1}}, {"title": "t", "at": 1}),
}


@pytest.mark.parametrize("name", HINTS)
def test_a_hint_becomes_a_schema_that_its_values_fit(name: str) -> None:
    hint, schema, fits, wrong = HINTS[name]

    def take(value: Any) -> str:
        return repr(value)

    take.__annotations__["value"] = hint
    tool = function_tool(take, takes_state=False)
    assert tool.tool.schema["properties"] == {"value": schema}
    assert check_call(made("take", value=fits), [tool.tool]) == ""
    assert "arguments['value']" in check_call(made("take", value=wrong), [tool.tool])
    json.dumps(dict(tool.tool.schema))


def test_a_decimal_is_exact_and_a_time_has_its_zone() -> None:
    def owed(
        amount: Decimal, due: Annotated[datetime, Field(description="When.")], parts: list[Point]
    ) -> dict[str, Any]:
        return {"amount": amount * 3, "due": due, "parts": parts}

    tool = function_tool(owed, takes_state=False)
    properties: Any = tool.tool.schema["properties"]
    assert properties["due"]["description"] == "When."
    arguments = {"amount": "0.1", "due": "2026-11-27T22:00:00Z", "parts": [{"x": 1}]}
    assert check_call(made("owed", **arguments), [tool.tool]) == ""
    with pytest.raises(ToolError, match="owed: amount: Input should be a valid decimal"):
        tool.convert({"amount": "much"})
    assert json.loads(tool(None, tool.convert(arguments))) == {
        "amount": "0.3",
        "due": "2026-11-27T22:00:00Z",
        "parts": [{"x": 1, "y": 0}],
    }


def test_values_have_the_types_of_the_hints_and_properties_may_be_called_title() -> None:
    def take(label: Label, colour: Colour, at: Point) -> str:
        return f"{label.at.x} {colour.name} {at.y}"

    tool = function_tool(take, takes_state=False)
    arguments = {"label": {"title": "t", "at": {"x": 4}}, "colour": "blue", "at": {"x": 1}}
    assert check_call(ToolCall(name="take", arguments=arguments), [tool.tool]) == ""
    assert tool(None, tool.convert(arguments)) == "4 BLUE 0"


def test_descriptions_come_from_the_docstring_and_the_state_is_no_argument() -> None:
    def move(state: object, n: int, back: bool = False) -> dict[str, int]:
        """Move a piece
        on the board.

        It never fails.

        Args:
            n: How many
                fields.
            back (bool): Whether backwards.

        Returns:
            other: not an argument.
        """
        return {"at": n}

    tool = function_tool(move, takes_state=True)
    assert tool.tool.description == "Move a piece on the board."
    assert tool.tool.schema == {
        "type": "object",
        "properties": {
            "n": {"type": "integer", "description": "How many fields."},
            "back": {"type": "boolean", "description": "Whether backwards.", "default": False},
        },
        "required": ["n"],
        "additionalProperties": False,
    }
    assert tool("state", {"n": 2}) == '{"at": 2}'


def test_a_function_that_cannot_be_a_tool_is_refused() -> None:
    def untyped(state: object, n) -> None: ...  # type: ignore[no-untyped-def]
    def many(state: object, *names: str) -> None: ...
    def stateless() -> None: ...
    def odd(state: object, f: Callable[[], int]) -> None: ...
    async def later(state: object) -> Any:
        yield state

    for function, message in (
        (untyped, "parameter n without a type hint"),
        (many, r"parameter \*names"),
        (stateless, "need the state as the first one"),
        (odd, "type hint .* of f, which has no JSON schema"),
        (later, "a generator"),
    ):
        with pytest.raises(ValueError, match=message):
            function_tool(function, takes_state=True)
    for tool, message in (
        (lambda: "", r"the function .*<lambda> .*need one at the top of a module.*write it by `def`"),
        (stateless, r"<locals>\.stateless \(.*test_tools\.py, line \d+\)"),
        (Till().paid, r"the method Till\.paid of an object without a name .*make the object there"),
        (partial(price, good="tea"), r"an object of partial .*give it a name there, or write a function by `def`"),
    ):
        with pytest.raises(ValueError, match=f"(?s){message}"):
            shop(tools=[tool])
    with pytest.raises(
        ValueError, match="tool partial: got an object without a name; need a function, written by `def`"
    ):
        shop(tools=[cheap])
    with pytest.raises(ValueError, match="two tools with the name 'price'"):
        first(shop(tools=[price, price]))


def test_tools_may_be_async_and_methods() -> None:
    env = tools_env(
        tools=[Shop.add, TILL.paid, Till.change, slow, fails, dear],
        state=opens,
        tasks=rows,
        reward=judged,
        branching=Branching.COPY,
    )
    again = pickle.loads(pickle.dumps(env))
    assert load(json.loads(json.dumps(dump(env)))) == again == env
    given = [
        made("add", good="tea"),
        made("paid", coins=2),
        made("change", coins=3),
        made("slow", n=4),
        made("in_stock", good="rice"),
    ]
    start = env.start(replace(env.tasks("train", 1, 0)[0]))
    assert "self" not in start.tools[0].schema["properties"]
    step = env.step(start, calls(*given))
    assert texts(step) == ["1", "2", "0", "4 async functions", "true"]
    assert env.step(step.state, Action(text="done")).success
    with pytest.raises(RuntimeError, match="a bug"):
        env.step(start, calls(made("fails")))
    with pytest.raises(SystemExit):
        env.step(start, calls(made("fails", leaves=True)))
    assert texts(env.step(start, calls(made("slow", n=5)))) == ["5 async functions"]


def test_an_address_finds_the_function_of_the_loaded_module() -> None:
    assert find_function(address_of(price)) is price
    assert address_of(price).endswith("test_tools.py:price")
    assert find_function(address_of(split_of)) is split_of
    assert address_of(split_of) == "bough.env.splits:split_of"
    with pytest.raises(ValueError, match="has no function nothing"):
        find_function("bough.env.splits:nothing")


WRONG = {
    "no such tool": (made("sell", good="tea"), "got the tool 'sell'; need one of: price, buy, on, broken"),
    "missing": (made("price"), "got wrong arguments of price: 'good' is a required property"),
    "more": (
        made("price", good="tea", n=1),
        "got wrong arguments of price: Additional properties are not allowed ('n' was unexpected)",
    ),
    "type": (
        made("buy", good="tea", count="2"),
        "got wrong arguments of buy: arguments['count']: '2' is not of type 'integer'",
    ),
    "rule of a type": (made("on", day="31 May"), "on: day: Input should be a valid date"),
    "no call": (BadCall(text="<tool_call>{", problem="the JSON ends early"), "the JSON ends early"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_call_is_not_executed_and_the_model_reads_why(name: str) -> None:
    wrong, message = WRONG[name]
    step = shop().step(first(shop()), calls(wrong, made("buy", good="tea")))
    problem, result = texts(step)
    assert problem.startswith(f"error: {message}")
    assert (result, step.valid, step.outcome, step.state.key) == ("ok", False, Outcome.OPEN, "tea")


def test_calls_run_in_order_and_each_has_a_message_with_its_id() -> None:
    env = shop()
    state = first(env)
    assert [tool.name for tool in state.tools] == ["price", "buy", "on", "broken"]
    assert plain_text(state.observation).startswith("buy the cheapest")
    step = env.step(
        state, calls(made("buy", "a", good="oil"), made("buy", "b", good="tea"), made("price", "c", good="tea"))
    )
    assert texts(step) == ["ok", "ok", "3"]
    assert [message.call_id for message in step.state.observation] == ["a", "b", "c"]  # type: ignore[union-attr]
    assert (step.state.key, step.valid) == ("oil tea", True)


def test_errors_for_the_model_are_results_and_others_are_faults() -> None:
    env = shop()
    for refused, message in (
        (made("buy", good="gold"), "error: no gold here"),
        (made("buy", good="tea", count=0), "error: count below 1"),
        (made("price", good="gold"), "error: KeyError: 'gold'"),
    ):
        step = env.step(first(env), calls(refused))
        assert (texts(step), step.valid, step.outcome) == ([message], True, Outcome.OPEN)

    async def fault() -> None:
        host = InProcessHost(env=env)
        await host.step(await host.start(env.tasks("train", 1, 0)[0]), call("broken"))

    with pytest.raises(EnvFault, match=r"RuntimeError: a bug .*test_tools\.py, line \d+, in broken"):
        asyncio.run(fault())


def test_the_answer_ends_the_episode_and_the_limit_truncates_it() -> None:
    env = shop(reward=said, success_at=0.5, max_calls=2)
    state = first(env)
    assert (env.step(state, Action(text="done")).reward, env.step(state, Action(text="done")).success) == (0.0, False)
    two = env.step(state, calls(made("buy", good="tea"), made("buy", good="tea")))
    end = env.step(two.state, Action(text=" done\n"))
    assert (end.reward, end.success, end.outcome) == (0.5, True, Outcome.TERMINATED)
    assert env.step(two.state, Action(text="no")).reward == 0
    over = env.step(two.state, calls(made("buy", good="tea")))
    assert (over.outcome, over.reward, over.state.key) == (Outcome.TRUNCATED, 0.0, "tea tea")
    assert texts(over) == ["error: not executed, the limit is 2 calls"]
    right = shop().step(shop().step(first(shop()), calls(made("buy", good="tea"))).state, Action(text="x"))
    assert right.success is (right.reward == 1)


def test_more_wrong_calls_than_the_limit_truncate_the_episode() -> None:
    env = shop(max_errors=1)
    wrong, refused = BadCall(text="[buy(", problem="got no call"), made("buy", good="gold")
    one = env.step(first(env), calls(made("buy", good=3), refused))
    good = env.step(one.state, calls(refused, made("buy", good="tea")))
    over = env.step(good.state, Action(calls=(wrong,)))
    assert [step.outcome for step in (one, good, over)] == [Outcome.OPEN, Outcome.OPEN, Outcome.TRUNCATED]
    assert (over.reward, texts(over)) == (0.0, ["error: got no call"])
    assert env.step(one.state, calls(made("buy", good=3))).outcome is Outcome.TRUNCATED
    with pytest.raises(ValueError, match=r"max_errors: got -1"):
        shop(max_errors=-1)


def test_a_long_result_is_cut_and_lone_surrogates_are_replaced() -> None:
    env = replace(shop(), result_characters=20)
    (text,) = texts(env.step(first(env), calls(made("buy", good="x" * 50 + "\ud800"))))
    assert text.startswith("error: no xxxxxxxxxx... (cut: ")
    text.encode()


ENVS = {
    "copied": shop(),
    "copied by a function": shop(state=locked, copy=copied),
    "replayed": shop(branching=Branching.REPLAY),
    "cannot be copied": shop(state=locked),
}


def test_a_state_that_cannot_be_copied_is_replayed() -> None:
    found = {name: env.branching for name, env in ENVS.items()}
    assert [*found.values()] == [Branching.COPY, Branching.COPY, Branching.REPLAY, Branching.REPLAY]
    forced = shop(state=locked, branching=Branching.COPY)
    with pytest.raises(EnvFault, match=r"type Locked that cannot be copied .* need copy=FUNCTION or branching"):
        forced.step(first(forced), call(price, good="tea"))
    live = shop(branching=Branching.NONE)
    before = first(live)
    live.step(live.step(before, call(price, good="tea")).state, call(buy, good="tea"))
    assert live.step(before, call(price, good="tea")).state.key == "", "the first state can be stepped many times"
    after = live.step(before, call(price, good="tea")).state
    live.step(after, call(buy, good="tea"))
    with pytest.raises(EnvFault, match="not the newest"):
        live.step(after, call(price, good="tea"))


@pytest.mark.parametrize("name", ENVS)
def test_branches_are_the_same_however_states_are_reached(name: str) -> None:
    """Random branches from random states, and each again after pickling, against the plain copy."""
    rng, env, plain = Random(name), ENVS[name], ENVS["copied"]
    pairs = [(first(env), first(plain))]
    for _ in range(30):
        ours, theirs = rng.choice(pairs)
        action = calls(*(made("buy", good=rng.choice(["tea", "oil", "gold"])) for _ in range(rng.randint(1, 2))))
        step, other = env.step(ours, action), plain.step(theirs, action)
        assert (texts(step), step.state.key, step.outcome) == (texts(other), other.state.key, other.outcome)
        if step.outcome is Outcome.OPEN:
            pairs.append((step.state, other.state))
        again = pickle.loads(pickle.dumps(env))
        if name in ("copied", "replayed"):
            state = pickle.loads(pickle.dumps(ours))
            assert (texts(again.step(state, action)), again) == (texts(other), env)


def test_it_runs_in_workers_and_is_written_and_read() -> None:
    async def play(env: ToolsEnv | Replay) -> tuple[float, bool]:
        host = Workers(env=env, count=1)
        try:
            (task,) = await host.tasks("test", 1, 0)
            state = await host.start(task)
            plan = await host.plan(state)
            for action in plan or ():
                step = await host.step(state, action)
                state = step.state
            return step.reward, step.success
        finally:
            await host.close()

    for name in ("copied", "cannot be copied"):
        env = ENVS[name]
        assert asyncio.run(play(env)) == (1.0, True)
        assert load(dump(env)) == env
    assert shop().needs == {CALLS}
    assert (shop().gives, shop(plan=None).gives) == ({ORACLE}, set())
    assert shop(plan=None).plan(first(shop(plan=None))) is None


def endless(state: object, row: object) -> Iterator[str]:
    while True:
        yield "x"


def test_a_plan_that_never_ends_is_a_fault() -> None:
    env = shop(plan=endless)
    with pytest.raises(ValueError, match=r"plan: got more than 10,000 actions; need a plan that ends"):
        env.plan(first(env))


@pytest.mark.parametrize("name", ENVS)
def test_the_rest_of_a_plan_follows_from_what_was_done(name: str) -> None:
    env = ENVS[name]
    state = first(env)
    plan = env.plan(state)
    assert plan is not None
    assert len(plan) == 5
    for done in range(len(plan) - 1):
        assert env.plan(state) == plan[done:]
        state = env.step(state, replace(plan[done], text="thinking")).state
    astray = env.step(first(env), call(price, good="rice")).state
    assert env.plan(astray) == plan
    back = env.step(astray, plan[0]).state
    assert env.plan(back) == plan[1:], "a lookup after a detour is not repeated"
    assert env.plan(env.step(back, call(buy, good="rice")).state) is None


def test_a_database_is_copied_and_pickled_with_its_row_factory() -> None:
    import copy
    import sqlite3

    base = Database("create table goods (name); insert into goods values ('tea')")
    base.row_factory = sqlite3.Row
    other = copy.deepcopy(base)
    other.execute("insert into goods values ('oil')")
    read = pickle.loads(pickle.dumps(other))
    assert [len(each.execute("select * from goods").fetchall()) for each in (base, other, read)] == [1, 2, 2]
    assert read.execute("select name from goods").fetchone()["name"] == "tea"


def test_tasks_are_split_by_content_and_a_split_of_their_own_wins(tmp_path: Path) -> None:
    lines = [*rows(), {"prompt": "mine", "split": "dev", "id": "one"}, {"prompt": "mine", "id": "two"}]
    lines[-1]["split"] = "dev"
    file = tmp_path / "tasks.jsonl"
    file.write_text("\n".join(json.dumps(line) for line in lines) + "\n\n")
    envs = [shop(tasks=file), shop(tasks=lines), shop(tasks=str(file))]
    found = [{split: {task.id for task in env.tasks(split, size, 3)} for split, size in SIZES.items()} for env in envs]
    assert found[0] == found[1] == found[2]
    train, dev, test = found[0].values()
    assert {"one", "two"} <= dev
    assert not train & dev | train & test | dev & test
    assert len(train | dev | test) == len(lines)
    assert envs[0].data_hash == envs[1].data_hash != shop().data_hash
    prompts = {task.data["prompt"] for task in envs[0].tasks("train", SIZES["train"], 0)}
    again = {task.data["prompt"] for task in shop(tasks=[*reversed(rows())]).tasks("train", SIZES["train"], 0)}
    assert prompts == again, "the order of the rows does not matter"
    assert envs[0].tasks("train", 9, 1)[:4] == envs[0].tasks("train", 4, 1) != envs[0].tasks("train", 4, 2)
    assert isinstance(load(dump(envs[1])), ToolsEnv)
    assert load(dump(envs[1])) == envs[1]


SIZES: dict[Any, int] = {
    split: len(found) + 2 * (split == "dev") for split, found in RowTasks("n", address_of(rows)).by_split.items()
}


def test_wrong_tasks_are_named() -> None:
    for given, message in (
        ([{"text": "a"}], 'task 1: got .*need a JSON object with a text or messages under "prompt"'),
        (["a", {"prompt": "b", "split": "all"}], "task 2: got the split 'all'"),
        ([{"prompt": "b", "split": "dev"}, {"prompt": "b", "split": "test"}], "splits dev and test"),
        ([{"prompt": "a", "id": "x"}, {"prompt": "b", "id": "x"}], "second task with the id 'x'"),
        ([{"prompt": "a", "prices": {1, 2}}], "need a mapping that JSON can write"),
        (["a", "\ud800"], r"row 2: got .*need a mapping that JSON can write \(.*surrogates not allowed"),
    ):
        with pytest.raises(ValueError, match=message):
            shop(tasks=given, state=None, tools=[split_of], plan=None, key=None).tasks("train", 1, 0)
    with pytest.raises(ValueError, match=r"got count=900 for split 'test'; there are .* of 'train'"):
        shop().tasks("test", 900, 0)
