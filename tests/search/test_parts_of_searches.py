"""What makes a named search its paper's: how it selects, proposes, rates, evaluates, backs up and prunes."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from bough.search import (
    ActionKind,
    Admissible,
    AStarCost,
    BeamWidth,
    Best,
    CommitToExecuted,
    CriticRating,
    CriticValue,
    DedupeStates,
    DepthFirst,
    Descend,
    DrawOpen,
    EachKind,
    Embedded,
    EnvReturn,
    FewestMatches,
    FinishPathFirst,
    GuidedDescend,
    Hybrid,
    Introspect,
    JudgeAction,
    Level,
    LogRatio,
    MaxBackup,
    MeanBackup,
    NegamaxBackup,
    NodeValue,
    PathRating,
    PayoffValue,
    ProgramCritic,
    PruneRegressions,
    Puct,
    Ranked,
    RebaseAllocation,
    Rethink,
    RolloutValue,
    Sample,
    SampleKinds,
    Search,
    ShortestState,
    Siblings,
    Sparse,
    SubgoalValue,
    SumBackup,
    Surrogate,
    UnionOf,
    UntilEnds,
    VisitCount,
    agent_q,
    agent_swift,
    board_games,
    code_tree,
    cr_planner,
    doraemon,
    ets,
    i_mcts,
    implicit_beam,
    mps_prover,
    q_star,
    reex_sql,
    rethink,
    web_pilot,
)

GAMES = board_games(width=2, simulations=5, c=2.0, moves=7)
WEB = web_pilot(width=2, c=3.0, rounds=4, revisions=1)

PARTS: Mapping[str, tuple[Search, Mapping[str, object]]] = {
    "agent_swift": (
        agent_swift(width=1, evaluations=5, optimism=2.0),
        {
            "select": GuidedDescend(model=Surrogate(optimism=2.0)),
            "expand": EachKind(width=1),
            "rate": Surrogate(optimism=2.0),
            "evaluate": EnvReturn(),
            "backup": MeanBackup(),
            "success_value": None,
            "anywhere": True,
            "rounds": 5,
        },
    ),
    "board_games": (
        GAMES.search,
        {
            "select": Descend(by=Puct(c=2.0)),
            "expand": Sample(width=2),
            "evaluate": PayoffValue(),
            "backup": NegamaxBackup(),
            "success_value": None,
            "rounds": 5,
        },
    ),
    "agent_q": (
        agent_q(width=2, share=0.3, c=2.0),
        {
            "select": Descend(by=Hybrid(c=2.0, share=0.3), revisit=False),
            "expand": Sample(width=2),
            "rate": Ranked(),
            "evaluate": RolloutValue(),
            "backup": MeanBackup(),
        },
    ),
    "code_tree": (
        code_tree(width=2, programs=5),
        {
            "select": DepthFirst(),
            "evaluate": ProgramCritic(),
            "prune": (PruneRegressions(),),
            "stop_value": 2.0,
            "anywhere": True,
            "rounds": 6,
        },
    ),
    "cr_planner": (
        cr_planner(kinds=("a", "b"), samples=2),
        {
            "expand": SampleKinds(kinds=("a", "b"), width=2, best=True),
            "rate": CriticRating(),
            "prune": (CommitToExecuted(),),
        },
    ),
    "doraemon": (
        doraemon(answers=2, decay=0.3, sharpness=2.0, width=5),
        {
            "select": UntilEnds(max_ends=2, then=FinishPathFirst(then=DrawOpen(sharpness=2.0))),
            "expand": Sample(width=1, hint=Siblings(carry_out=True)),
            "backup": SumBackup(decay=0.3),
            "widen": 5,
            "failure_value": -1.0,
        },
    ),
    "ets": (
        ets(width=3, temperature=0.5, cost=0.7, spread=0.9),
        {
            "select": RebaseAllocation(width=3, temperature=0.5),
            "evaluate": Embedded(),
            "prune": (Sparse(width=3, temperature=0.5, cost=0.7, spread=0.9),),
        },
    ),
    "i_mcts": (
        i_mcts(width=2, rounds=3),
        {
            "select": Best(by=Hybrid()),
            "expand": Sample(width=2, hint=Introspect()),
            "rate": JudgeAction(),
            "evaluate": RolloutValue(),
            "backup": MeanBackup(),
            "rounds": 3,
        },
    ),
    "implicit_beam": (
        implicit_beam(width=2, samples=3, beta=0.3, role="old"),
        {
            "expand": Sample(width=3),
            "rate": LogRatio(beta=0.3, role="old"),
            "prune": (DedupeStates(), BeamWidth(width=2, by=PathRating(), shrink=True)),
        },
    ),
    "mps_prover": (
        mps_prover(width=2, cases="case"),
        {
            "select": UnionOf(
                of=(
                    Best(by=NodeValue()),
                    Best(by=ActionKind()),
                    Best(by=FewestMatches(pattern="case")),
                    Best(by=ShortestState()),
                )
            ),
            "expand": Sample(width=2),
            "evaluate": CriticValue(),
            "prune": (DedupeStates(),),
        },
    ),
    "q_star": (
        q_star(weight=0.5, discount=0.8, rounds=7),
        {
            "select": Best(by=AStarCost(weight=0.5), deepest=True),
            "expand": Admissible(),
            "rate": CriticRating(discount=0.8),
            "prune": (DedupeStates(),),
            "rounds": 7,
        },
    ),
    "reex_sql": (reex_sql().search, {"select": Level(), "stop_value": None}),
    "rethink": (
        rethink(width=2, rounds=5),
        {
            "select": Descend(by=Puct(c=4.0, base=10.0, log=True), revisit=False),
            "expand": Sample(width=2),
            "rate": Rethink(),
            "evaluate": RolloutValue(),
            "backup": MaxBackup(gamma=0.9),
            "rounds": 5,
        },
    ),
    "web_pilot": (
        WEB.search,
        {
            "select": Descend(by=Puct(c=1.5), revisit=False),
            "backup": MaxBackup(),
            "widen": 2,
            "rounds": 4,
        },
    ),
}


@pytest.mark.parametrize("name", PARTS)
def test_a_search_has_the_parts_of_its_paper(name: str) -> None:
    how, parts = PARTS[name]
    assert replace(how, **parts) == how


def test_what_surrounds_the_searches() -> None:
    assert (GAMES.to, GAMES.by, GAMES.moves) == ("action", VisitCount(), 7)
    assert (WEB.reflect, WEB.revisions) == (True, 1)
    assert reex_sql().by == "result"
    assert q_star(width=3).expand == Sample(width=3)


def test_web_pilot_rates_states_that_do_not_reach_the_subtask_and_reads_failures() -> None:
    value = WEB.search.evaluate
    assert isinstance(value, SubgoalValue)
    assert "from 0 to 10" in value.value.prompt  # type: ignore[attr-defined]
    assert [type(part).__name__ for part in WEB.search.expand.hint.parts] == [  # type: ignore[attr-defined]
        "SubgoalHint",
        "Critique",
        "Siblings",
        "Reflections",
    ]
