"""Python functions as tools: `bough train grpo --on examples/tools_env.py:world`."""

from itertools import permutations, product

from bough.context import ToolCalls
from bough.engine import Sampling
from bough.env import Database, call, tools_env
from bough.policy import Tiny
from bough.train import Warmup, World

GOODS = ("beans", "bread", "honey", "milk", "oil", "rice", "salt", "tea")
PAIRS = product(permutations(GOODS, 2), range(1, 10), range(1, 10))
TASKS = [{"prompt": f"buy {a} or {b}", "prices": {a: p, b: q}} for (a, b), p, q in PAIRS if p != q]


def opened(task: dict) -> Database:
    """The state of an episode: any object; here a SQLite database."""
    shop = Database("create table goods (name, price); create table basket (name)")
    shop.executemany("insert into goods values (?, ?)", task["prices"].items())
    return shop


def price(shop: Database, good: str) -> int:
    """Price of a good."""
    return shop.execute("select price from goods where name = ?", [good]).fetchall()[0][0]


def buy(shop: Database, good: str) -> None:
    """Buy a good."""
    shop.execute("insert into basket select name from goods where name = ?", [good])


def cheaper(shop: Database, task: dict) -> bool:
    """The reward, of the final state."""
    return shop.execute("select name from basket").fetchall() == [(min(task["prices"], key=task["prices"].get),)]


def plan(shop: Database, task: dict) -> list | None:
    """The oracle, for the warm-up; without one an agent learns from its own attempts."""
    if shop.execute("select name from basket").fetchall():
        return None  # nothing can be given back
    prices = task["prices"]
    return [*(call(price, good=good) for good in prices), call(buy, good=min(prices, key=prices.get)), "done"]


def world() -> World:
    """Trains in some minutes on two CPU cores."""
    env = tools_env(tools=[price, buy], state=opened, tasks=TASKS, reward=cheaper, plan=plan)
    warmup = Warmup(demonstrations=64, learning_rate=3e-3)
    return World(
        name="cheaper", env=env, policy=Tiny(), parser=ToolCalls(), sampling=Sampling(max_tokens=64), warmup=warmup
    )
