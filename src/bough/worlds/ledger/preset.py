"""Accounts in a SQLite database: look balances up, compare them, and move money."""

from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

from bough.context import ToolCalls
from bough.engine import Sampling
from bough.env import Database, ToolError, call, tools_env
from bough.env.splits import split_of
from bough.learner import Optimizer
from bough.policy import Tiny
from bough.rollout import Limits
from bough.train import Evaluation, Schedule, Tasks, Warmup, World
from bough.tree import Action

NAMES = ("ann", "ben", "dan", "rob", "sam", "ted", "tom", "val")
TASKS = 6000
LOW = 4
"""An account below this is short of money."""


def get(db: Database, name: str) -> str:
    """Balance of an account."""
    found = db.execute("select balance from accounts where name = ?", [name]).fetchone()
    if found is None:
        raise ToolError(f"no account {name}")
    db.execute("insert or ignore into seen values (?)", [name])
    return f"{name} {found[0]}"


def pay(db: Database, name: str, n: int) -> str:
    """Pay n into an account."""
    if db.execute("update accounts set balance = balance + ? where name = ? and ? > 0", [n, name, n]).rowcount != 1:
        raise ToolError(f"got {n} for {name}; need an account, and more than 0")
    return "ok"


def opened(row: Mapping[str, Any]) -> Database:
    """The database of a task: the accounts, and the names that were looked up."""
    db = Database("create table accounts (name primary key, balance); create table seen (name primary key)")
    db.executemany("insert into accounts values (?, ?)", row["accounts"].items())
    return db


def settled(db: Database, row: Mapping[str, Any]) -> bool:
    """The reward: whether the right amount was paid to the account that is short, and nothing else changed."""
    name, n = row["pay"]
    return dict(db.execute("select name, balance from accounts")) == row["accounts"] | {name: row["accounts"][name] + n}


def content(db: Database, row: Mapping[str, Any]) -> str:
    """The state key: the task, the balances, and the names that were looked up."""
    balances, seen = (db.execute(f"select * from {table}").fetchall() for table in ("accounts", "seen"))
    return f"{row['prompt']} {balances} {sorted(seen)}"


def plan(db: Database, row: Mapping[str, Any]) -> list[Action | str]:
    """The oracle: lookups in order, up to the account that is short, the payment, and the answer.

    After the right payment the answer alone; after a wrong one nothing.
    """
    if settled(db, row):
        return ["done"]
    if dict(db.execute("select name, balance from accounts")) != row["accounts"]:
        return []
    name, n = row["pay"]
    asked = [*row["accounts"]]
    return [*(call(get, name=each) for each in asked[: asked.index(name) + 1]), call(pay, name=name, n=n), "done"]


def rows() -> Iterator[dict[str, Any]]:
    """The tasks: pay the one account of up to four that is short. No prompt is in two splits."""
    rng = Random("ledger")
    for _ in range(TASKS):
        names = rng.sample(NAMES, rng.choice((2, 3, 4)))
        short, n = rng.choice(names), rng.randint(1, 9)
        accounts = {name: rng.randint(1, 3) if name == short else rng.randint(5, 9) for name in names}
        prompt = f"pay {n} to the one of {' '.join(names)} under {LOW}"
        yield {"prompt": prompt, "accounts": accounts, "pay": (short, n), "split": split_of(prompt)}


def ledger() -> World:
    """Two to five calls of tools that change a database, far smaller than tau-bench's (arXiv 2406.12045).

    Assumes an oracle for the warm-up. The balances are not in the prompt, so an agent without lookups guesses.
    """
    env = tools_env(
        tools=[get, pay],
        tasks=rows,
        state=opened,
        reward=settled,
        plan=plan,
        key=content,
        instructions="Keep the accounts. Look up, then pay, then answer done.",
        max_calls=6,
        max_errors=0,
        name="ledger",
    )
    return World(
        name="ledger",
        env=env,
        policy=Tiny(layers=2, width=64, heads=4, context_tokens=1024),
        parser=ToolCalls(),
        limits=Limits(turns=6),
        sampling=Sampling(max_tokens=24),
        optimizer=Optimizer(learning_rate=3e-4, minibatches=2),
        warmup=Warmup(demonstrations=1024, epochs=3, learning_rate=3e-3, batch_tokens=2048),
        schedule=Schedule(steps=150, batch_tasks=16),
        tasks=Tasks(split="train", count=2000),
        evaluation=Evaluation(tasks=Tasks(split="test", count=200), every=50),
    )
