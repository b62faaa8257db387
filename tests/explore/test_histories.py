"""Agent programs that change their history: the tree has each prompt as the engine read it, each sampled token once."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest
from tests.engines import Recorder
from tests.explore.test_program import kinds
from tests.invariants.test_engine_read import Read, trained, written
from tests.serve.dialects.table import LineChat

from bough.batch import pack
from bough.context import Full, Plain
from bough.credit import Grpo
from bough.engine import Completion, Request, Sampling, Scripted
from bough.env import InProcessHost, ProgramTasks
from bough.explore import Program
from bough.reward import EnvReward, compute_rewards
from bough.rollout import Agent, Deadlines, Limits, RolloutRunner
from bough.train.notices import Notices
from bough.train.summary import summarize
from bough.tree import Kind, Outcome, Task, Tree, counted, leaves

AGENT = f"{Path(__file__).with_name('agents') / 'histories.py'}:agent"
DIALECTS = ("chat", "responses", "by_id", "messages")

WHOLE = "PAOAOAO"
"""The path of a conversation with a call, an answer and one more answer, with its end."""

# By what the program does: the kinds of the nodes on each path, and the edits.
CASES: dict[str, tuple[list[str], dict[str, int]]] = {
    "compaction": (["PAOAEAEAOAO"], {"tools": 2, "turns": 1}),
    "window": (["PAOAOAEAO"], {"turns": 1}),
    "dropped_thinking": ([WHOLE], {}),
    "changed_thinking": (["PAOAEAO"], {"thinking": 1}),
    "side_call": (["PAOAEAO", WHOLE], {"tools": 1}),
    "sub_agents": (["PAEAOAO", "PAEAOAO", "PAOAO"], {"conversation": 2}),
    "edited_result": (["PAOAEAO"], {"messages": 1}),
    "edited_answer": (["PAOAEAO"], {"answers": 1}),
    "other_system": (["PAOAEAO"], {"system": 1}),
    "step_back": ([WHOLE, WHOLE], {}),
    "votes": ([WHOLE] * 3, {}),
    "same_sub_agent": (["PAEAO", "PAEAOAO", "PAOAOAO"], {"conversation": 1}),
    # Of abandoned answers the paths have no end.
    "retried": (["PAOAOA", "PAOAOAOAO"], {}),
    "retried_last": (["PAOAOA", WHOLE], {}),
    "sent_twice": (["PAOAOA", "PAOAOAOAO"], {}),
    "timeout": (["PAOAOAOAO"], {}),
    "embeds": (["PAO"], {}),
}
ABANDONED = ("retried", "retried_last", "sent_twice")


class Slow(Recorder):
    """The first completion of a prompt with the word SLOW has no end."""

    slow = True

    async def generate(self, request: Request) -> Completion:
        if self.slow and "SLOW" in LineChat().text(request.prompt_tokens):
            self.slow = False
            await asyncio.Event().wait()
        return await super().generate(request)


def script(request: Request) -> tuple[int, ...]:
    """Other answers to each request; a call to a last message with the word CALL."""
    word = f"{request.seed % 10**9:09}"
    last = LineChat().text(request.prompt_tokens[-20:])
    said = f'{{"name": "look", "arguments": {{"at": "{word}"}}}}' if last.endswith("CALL it") else f"said-{word}"
    return LineChat().write(f"<think>\nhm {word}\n</think>\n\n{said}")


def grow(*data: Mapping[str, object], n: int = 1, limits: Limits | None = None) -> list[tuple[Tree, Recorder]]:
    """The tree of each task, with what its engine read and wrote."""

    async def one(number: int, row: Mapping[str, object]) -> tuple[Tree, Recorder]:
        recorder = Slow(Scripted(script=script))
        agent = Agent(
            engine=recorder, renderer=LineChat(), context=Full(), parser=Plain(), sampling=Sampling(max_tokens=200)
        )
        runner = RolloutRunner(
            agent=agent,
            host=InProcessHost(env=ProgramTasks()),
            instructions="",
            limits=limits or Limits(turns=20),
            deadlines=Deadlines(),
        )
        task = Task(id=f"task {number}", data=row)
        return (await runner.run(Program(agent=AGENT, n=n, retries=0), [task], seed=0)).trees[0], recorder

    async def main() -> list[tuple[Tree, Recorder]]:
        return await asyncio.gather(*(one(number, row) for number, row in enumerate(data)))

    return asyncio.run(main())


@cache
def grown() -> dict[tuple[str, str], tuple[Tree, Recorder]]:
    """The trees of all cases."""
    pairs = [(does, dialect) for does in CASES for dialect in DIALECTS]
    return dict(zip(pairs, grow(*({"does": does, "dialect": dialect} for does, dialect in pairs)), strict=True))


def learned(*trees: Tree) -> Counter[Read]:
    """What is trained, after what."""
    return trained(pack(Grpo()(compute_rewards(list(trees), (EnvReward(),)))))


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("does", CASES)
def test_a_changed_history_is_a_tree_of_what_the_engine_read(does: str, dialect: str) -> None:
    tree, recorder = grown()[does, dialect]
    paths, edits = CASES[does]
    assert sorted(kinds(tree)) == sorted(paths)
    assert tree.counts.edits == edits
    assert sum((tree.kind == Kind.EDIT).tolist()) == (max(edits.values()) if edits else 0)
    ends = [path for path in paths if path.endswith("O")]
    assert [Outcome(each) for each in tree.outcome[counted(tree)]] == [Outcome.TERMINATED] * len(ends)
    read, sampled = learned(tree), written(recorder)
    assert not read - sampled, "a token is trained more often than it was sampled"
    dropped = [node for node in leaves(tree).tolist() if tree.kind[node] == Kind.ACTION]
    assert sorted(token for _, token, _ in (sampled - read).elements()) == sorted(
        token for node in dropped for token in tree.tokens_of(node).tolist()
    )
    assert tree.counts.abandoned == len(dropped) == (does in ABANDONED)
    assert tree.counts.disconnects == (does == "timeout")
    assert tree.counts.rejected == (3 if does == "embeds" else 0)


def test_an_edit_has_the_first_message_that_differs() -> None:
    tree, _ = grown()["edited_result", "chat"]
    (edit,) = [info["edit"] for info in tree.info if "edit" in info]
    assert edit == {"kinds": ["messages"], "message": 3, "before": "a door", "after": "(cut)"}


def test_an_abandoned_answer_is_the_one_before_the_retry() -> None:
    for does, reason in (("retried_last", "sent the request again"), ("sent_twice", "went on with another answer")):
        tree, recorder = grown()[does, "chat"]
        (dropped,) = [node for node, info in enumerate(tree.info) if "abandoned" in info]
        assert reason in str(tree.info[dropped]["abandoned"])
        same = [made for request, made in recorder.heard if recorder.heard[2][0].prompt_tokens == request.prompt_tokens]
        assert tree.tokens_of(dropped).tolist() == list(same[0].tokens)
        assert tree.env_reward[dropped] == 0


def test_a_tie_of_sub_agents_does_not_depend_on_their_order() -> None:
    tree, _ = grown()["sub_agents", "chat"]
    edits = [int(node) for node in range(tree.nodes) if tree.kind[node] == Kind.EDIT]
    assert len({int(tree.parent[node]) for node in edits}) == 1


@pytest.mark.parametrize("dialect", ["chat", "messages"])
def test_an_answer_that_a_stop_string_cut_is_read_in_other_tokens(dialect: str) -> None:
    ((tree, recorder),) = grow({"does": "cut_short", "dialect": dialect})
    assert kinds(tree) == ["PAEAO"]
    assert tree.counts.edits == {"rendering": 1}
    assert learned(tree) == written(recorder)


def test_choices_of_a_request_that_failed_are_on_no_path() -> None:
    ((tree, recorder),) = grow({"does": "too_many_choices", "dialect": "chat"}, limits=Limits(turns=3))
    assert tree.counts.abandoned == 2
    assert sum(learned(tree).values()) == len(recorder.heard[0][1].tokens)


def test_a_request_without_a_tree_is_named() -> None:
    ((tree, _),) = grow({"does": "embeds_alone", "dialect": "chat"})
    (leaf,) = leaves(tree).tolist()
    assert tree.outcome[leaf] == Outcome.FAILED
    assert "the server refused 1 request: 404 got POST /v1/embeddings" in str(tree.info[leaf]["fault"])


def test_a_run_counts_what_a_program_did() -> None:
    trees = [grown()[does, "chat"][0] for does in ("compaction", "retried", "timeout", "embeds")]
    metrics = summarize(compute_rewards(trees, (EnvReward(),)), unstarted=0, dropped={})
    assert {name: value for name, value in metrics.items() if name.partition("/")[0] in ("edits", "calls")} == {
        "edits/tools": 2,
        "edits/turns": 1,
        "calls/abandoned": 1,
        "calls/disconnects": 1,
        "calls/rejected": 3,
        "calls/total": 3,
        "calls/malformed": 0,
        "calls/missing": 1,
    }
    lines: list[str] = []
    notices = Notices(report=lambda alarm: lines.append(str(alarm)))
    for _ in range(2):
        notices.programs(trees)
    assert [line.partition("(")[2].partition(")")[0] for line in lines] == [
        "edits/KIND",
        "calls/abandoned",
        "calls/rejected",
    ]
    assert "404 got POST /v1/embeddings" in lines[-1]
