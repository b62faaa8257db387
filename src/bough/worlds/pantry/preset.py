"""A pantry in a SQLite database: look up what is needed and what is there, and buy the rest."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from random import Random
from typing import Any

from bough.env import Database, ToolError, call, tools_env
from bough.env.splits import split_of
from bough.rollout import Limits
from bough.train import Evaluation, Tasks, World
from bough.tree import Action
from bough.worlds.ledger.preset import ledger
from bough.worlds.shop.env import GOODS

TASKS = 6000


def look(db: Database) -> str:
    """What is needed, what is there, and how many things are missing."""
    needed, there = _names(db, "needed"), _names(db, "pantry")
    missing = len({*needed.split()} - {*there.split()})
    return f"need: {needed}\nhave: {there}\nmissing: {missing}"


def buy(db: Database, good: str) -> str:
    """Buy one thing."""
    name = good.strip().lower()
    wanted = name in _names(db, "needed").split() and name not in _names(db, "pantry").split()
    db.execute("insert into bought values (?, ?)", [name, wanted])
    if not wanted:
        raise ToolError(f"{good} is not missing")
    db.execute("insert into pantry values (?)", [name])
    return look(db)


def stocked(row: Mapping[str, Any]) -> Database:
    """The database of a task: the needed things, the stock, and the purchases so far."""
    db = Database(
        "create table needed (name primary key); create table pantry (name primary key);"
        "create table bought (name, right)"
    )
    for table, column in (("needed", "needed"), ("pantry", "has")):
        db.executemany(f"insert into {table} values (?)", [[name] for name in row[column]])
    return db


def paid(db: Database, row: Mapping[str, Any]) -> float:
    """The reward: 1 for all missing things and no wrong one, else half of the share bought before a wrong one."""
    right = [right for (right,) in db.execute("select right from bought order by rowid")]
    missing = len({*row["needed"]} - {*row["has"]})
    if right == [1] * missing:
        return 1.0
    return 0.5 * right[: right.index(0) if 0 in right else None].count(1) / missing


def content(db: Database, row: Mapping[str, Any]) -> str:
    """The state key: needed things, stock, and whether a wrong thing was bought."""
    del row
    (wrong,) = db.execute("select count(*) from bought where not right").fetchone()
    return f"{look(db)}\nwrong: {wrong > 0}"


def plan(db: Database, row: Mapping[str, Any]) -> list[Action | str]:
    """The oracle: a look, the missing things in the order of the list, the answer. Empty after a wrong purchase."""
    (wrong,) = db.execute("select count(*) from bought where not right").fetchone()
    there = _names(db, "pantry").split()
    return [] if wrong else [call(look), *(call(buy, good=each) for each in row["needed"] if each not in there), "done"]


def rows() -> Iterator[dict[str, Any]]:
    """The tasks: one to four of four things are missing. The list decides the split: no list is in two."""
    rng = Random("pantry")
    for number in range(TASKS):
        needed = sorted(rng.sample(GOODS, 4))
        has = sorted(rng.sample(needed, rng.randint(0, 3)))
        split = split_of(" ".join(needed))
        yield {"id": f"{number}", "prompt": "Fill the pantry.", "needed": needed, "has": has, "split": split}


def _names(db: Database, table: str) -> str:
    return " ".join(name for (name,) in db.execute(f"select name from {table} order by rowid"))


def pantry() -> World:
    """Two to five calls of tools that change a database, far smaller than tau-bench's (arXiv 2406.12045).

    Assumes an oracle for the warm-up. The prompt has neither the needed things nor the stock, so the agent has to look.
    """
    env = tools_env(
        tools=[look, buy],
        tasks=rows,
        state=stocked,
        reward=paid,
        plan=plan,
        key=content,
        instructions="Look, buy each thing that is needed and not there once, then answer done.",
        max_calls=6,
        max_errors=0,
        name="pantry",
    )
    return replace(
        ledger(),
        name="pantry",
        env=env,
        limits=Limits(turns=7),
        evaluation=Evaluation(tasks=Tasks(split="test", count=100), every=20),
    )
