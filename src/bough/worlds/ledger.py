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
from bough.train import Evaluation, Execution, Schedule, Tasks, Warmup, World
from bough.tree import Action

NAMES = ("ann", "ben", "dan", "rob", "sam", "ted", "tom", "val")
TASKS = 6000


def get(db: Database, name: str) -> str:
    """Balance of an account."""
    found = db.execute("select balance from accounts where name = ?", [name]).fetchone()
    if found is None:
        raise ToolError(f"no account {name}")
    db.execute("insert or ignore into seen values (?)", [name])
    return f"{name} has {found[0]}"


def pay(db: Database, src: str, dst: str, n: int) -> str:
    """Move n from one account to another."""
    balance = dict(db.execute("select name, balance from accounts"))
    if src not in balance or dst not in balance:
        raise ToolError(f"no account {dst if src in balance else src}")
    if not 0 < n <= balance[src]:
        raise ToolError(f"{src} has {balance[src]}")
    db.executemany("update accounts set balance = balance + ? where name = ?", [(-n, src), (n, dst)])
    return "ok"


def opened(row: Mapping[str, Any]) -> Database:
    """The accounts of a task, and the names that were looked up."""
    db = Database("create table accounts (name primary key, balance); create table seen (name primary key)")
    db.executemany("insert into accounts values (?, ?)", row["accounts"].items())
    return db


def settled(db: Database, row: Mapping[str, Any]) -> float:
    """1 for the right payment and nothing else; a quarter for each part that is right: payer, receiver, amount."""
    src, dst, n = row["pay"]
    balances = dict(db.execute("select name, balance from accounts"))
    moved = {name: balances[name] - before for name, before in row["accounts"].items() if balances[name] != before}
    if moved == {src: -n, dst: n}:
        return 1.0
    return ((moved.get(src, 0) < 0) + (moved.get(dst, 0) > 0) + (max(moved.values(), default=0) == n)) / 4


def content(db: Database, row: Mapping[str, Any]) -> str:
    """The balances, and the names that were looked up."""
    balances, seen = (db.execute(f"select * from {table}").fetchall() for table in ("accounts", "seen"))
    return f"{row['prompt']} {balances} {sorted(seen)}"


def plan(db: Database, row: Mapping[str, Any]) -> list[Action | str]:
    """The oracle: the lookups, the payment, and the answer."""
    del db
    src, dst, n = row["pay"]
    return [*(call(get, name=name) for name in row["look"]), call(pay, src=src, dst=dst, n=n), "done"]


def rows() -> Iterator[dict[str, Any]]:
    """The tasks: pay the poorest of two to four. The prompt decides the split, so that no prompt is in two splits."""
    rng = Random("ledger")
    for _ in range(TASKS):
        src, *others = rng.sample(NAMES, rng.choice((3, 4, 5)))
        dst, n = rng.choice(others), rng.randint(4, 6)
        balances = {name: rng.randint(1, 3) if name == dst else rng.randint(7, 9) for name in sorted(others)}
        prompt = f"{src} pays {n} to the poorest of {' '.join(balances)}"
        yield {
            "prompt": prompt,
            "accounts": {src: rng.randint(n, 9), **balances},
            "look": [*balances],
            "pay": (src, dst, n),
            "split": split_of(prompt),
        }


def ledger() -> World:
    """Three to five calls of tools that change a database, far smaller than tau-bench's (arXiv 2406.12045).

    Assumes an oracle for the warm-up. The balances are not in the prompt, so an agent that looks nothing up guesses.
    """
    env = tools_env(
        tools=[get, pay],
        tasks=rows,
        state=opened,
        reward=settled,
        plan=plan,
        key=content,
        instructions="Keep the accounts. Look up, then pay, then answer done.",
        max_calls=5,
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
        optimizer=Optimizer(learning_rate=1e-3, minibatches=2),
        warmup=Warmup(demonstrations=128, epochs=8, learning_rate=3e-3, batch_tokens=2048),
        schedule=Schedule(steps=40, batch_tasks=16),
        execution=Execution(threads=1),
        tasks=Tasks(split="train", count=2000),
        evaluation=Evaluation(tasks=Tasks(split="test", count=200), every=10),
    )
