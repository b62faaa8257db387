"""ReEx-SQL (arXiv 2505.12768)."""

from dataclasses import replace

from bough.reward import Format
from bough.train import Run, World
from bough.worlds.sql import Sql
from bough.worlds.sql.partial_credit import PartialCredit


def reex_sql(world: World, *, exploration: float = 0.2, match: float = 0.2, malformed: float = 0.1) -> Run:
    """ReEx-SQL (arXiv 2505.12768): GRPO with a reward for format, execution, match, and exploring queries.

    Assumes the environment `Sql`, whose agent executes queries before its answer; in others only the penalty of the
    format is added to the world's rewards. A right answer has the reward 1; a wrong one .1 if it executes, and up to
    `match` for the similarity of its syntax tree to that of the gold query. Queries before the answer have up to
    `exploration`, for the part of the gold query's components that they contain. Observations have three rows, as in
    the paper. Experimental: written from the abstract, so the amounts are settings of Bough. The paper's decoding is
    the search `reex_sql`, on the trained run.

    Try: `bough train reex_sql --on sql`

    Args:
        world: With the environment `Sql`.
        exploration: Maximum reward of the queries before the answer.
        match: Maximum reward of a wrong answer for its similarity to the gold query.
        malformed: Cost of a text that is no action.
    """
    env = world.env
    if isinstance(env, Sql):
        credit = PartialCredit(executes=0.1, columns=0.0, rows=0.0, syntax=match, progress=exploration)
        env = replace(env, rows_shown=3, partial=credit)
    paid = tuple(each for each in world.rewards if not isinstance(each, Format))
    return world.run(env=env, rewards=(*paid, Format(penalty=malformed)))
