# ruff: noqa: ARG002
"""Answers with parts: what a parser finds is in the tree, in tokens, and what a teacher does is written alike."""

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.explore.stage import World, grow, runner, scripted
from tests.plain_renderer import PlainRenderer

from bough.context import Parser, PlanAct, Planned, Renderer, Tagged, Window
from bough.engine import Scripted
from bough.env import InProcessHost
from bough.explore import Chains, Demonstration
from bough.policy import Tiny
from bough.rollout import RolloutRunner
from bough.tree import Kind, Message, Ternary, Tree, token_node

PLAN = "<switch><subgoal>a, a</subgoal><action>a</action>"


def place(engine: Scripted, parser: Parser, renderer: Renderer | None = None, **changed: object) -> RolloutRunner:
    given = runner(engine, InProcessHost(env=World(length=3)), max_tokens=200)
    agent = replace(given.agent, parser=parser, **changed)
    return replace(given, agent=agent if renderer is None else replace(agent, renderer=renderer))


def actions(tree: Tree) -> list[int]:
    return [node for node in range(tree.nodes) if tree.kind[node] == Kind.ACTION]


def only(given: RolloutRunner, explorer: Chains | Demonstration) -> Tree:
    (tree,) = grow(given, explorer).trees
    return tree


def test_spans_are_of_tokens() -> None:
    tree = only(place(scripted(lambda _: PLAN), PlanAct()), Chains(n=1))
    for node in actions(tree):
        info, tokens = tree.info[node], tree.tokens_of(node).tolist()
        assert (info["text"], info["raw"], tree.well_formed[node]) == ("a", PLAN, Ternary.YES)
        assert (info["switch"], info["subgoal"], info["action"]) == (True, "a, a", True)
        parts = {name: "".join(map(chr, tokens[a:b])) for name, (a, b) in info["spans"].items()}
        assert parts == {"switch": "<switch>", "subgoal": "<subgoal>a, a</subgoal>", "action": "<action>a</action>"}
    assert tree.env_reward.sum() == 3.0, "the world got the actions"


def test_a_plain_answer_has_no_spans() -> None:
    tree = only(runner(scripted(lambda _: "a")), Chains(n=1))
    assert all("spans" not in info for info in tree.info)


class Pairs(PlainRenderer):
    """Tokens of two characters where there are two: some reach over the end of a part."""

    stop_tokens = (0,)

    def render(self, messages: Sequence[Message], tools: object = ()) -> tuple[int, ...]:
        return self.write("".join(message.content for message in messages))

    def extend(self, messages: Sequence[Message], tools: object = ()) -> tuple[int, ...]:
        return self.write(messages[-1].content)

    def write(self, action: str) -> tuple[int, ...]:
        return (*(self._pair(action[i : i + 2]) for i in range(0, len(action), 2)), 0)

    def text(self, tokens: object) -> str:
        return "".join(chr(token % 1000) + (chr(token // 1000) if token >= 1000 else "") for token in tokens if token)

    def _pair(self, two: str) -> int:
        return ord(two[0]) + (1000 * ord(two[1]) if len(two) > 1 else 0)


@pytest.mark.parametrize("lead", ["", " "])
def test_a_token_that_reaches_over_an_end_is_in_both_parts(lead: str) -> None:
    renderer = Pairs()
    written = renderer.write(lead + PLAN)[:-1]
    tree = only(place(Scripted(script=lambda _: written), PlanAct(), renderer), Chains(n=1))
    (first, *_) = actions(tree)
    spans, tokens = tree.info[first]["spans"], tree.tokens_of(first).tolist()
    ends = [len(renderer.text(tokens[:count])) for count in range(len(tokens) + 1)]
    for name, (a, b) in PlanAct()(lead + PLAN).spans.items():
        holds = [token for token in range(len(tokens)) if ends[token] < b and ends[token + 1] > a]
        assert list(range(*spans[name])) == holds
    # With a blank before it the first tag ends within a token, which the second begins with.
    assert (spans["switch"][1] > spans["subgoal"][0]) == bool(lead)


def test_spans_of_a_learned_vocabulary() -> None:
    texts = [PLAN, "<keep><action>größer 水 a</action>"] * 9
    renderer = Tiny(width=32, layers=1, device="cpu").build(texts).renderer
    rng = random.Random(0)
    for text in (*texts[:2], "<switch><subgoal>水水</subgoal> <action>\n über</action>"):
        written = renderer.write(text)[:-1]
        parser = PlanAct()
        tree = only(place(Scripted(script=lambda _, w=written: w), parser, renderer), Chains(n=1))
        node = rng.choice(actions(tree))
        tokens = tree.tokens_of(node).tolist()
        for name, (start, stop) in tree.info[node]["spans"].items():
            a, b = parser(text).spans[name]
            # Tokens are words and symbols here, a blank goes with what follows: no part shares a token.
            assert renderer.text(tokens[start:stop]).strip() == text[a:b].strip()


def test_a_demonstration_is_written_in_the_form() -> None:
    engine = scripted(lambda _: "never")
    tree = only(place(engine, PlanAct(every=2), context=Planned(context=Window(turns=1))), Demonstration())
    raw = [tree.info[node]["raw"] for node in actions(tree)]
    assert raw == [
        "<switch><subgoal>a, a</subgoal><action>a</action>",
        "<keep><action>a</action>",
        "<switch><subgoal>a</subgoal><action>a</action>",
    ]
    assert [tree.info[node]["text"] for node in actions(tree)] == ["a"] * 3
    assert all(tree.well_formed[node] == Ternary.YES for node in actions(tree))
    assert [tree.info[node]["switch"] for node in actions(tree)] == [True, False, True]
    assert tree.success[-1] == Ternary.YES
    read = ["".join(map(chr, tree.tokens_of(node).tolist())) for node in range(tree.nodes) if tree.kind[node] == 3]
    assert [text.partition("\n")[2] for text in (part.rpartition("{")[2] for part in read)] == [
        "Subgoal since 1: a, a}",
        "Subgoal since 2: a, a}",
    ]
    instructions = tree.info[0]["instructions"]
    assert instructions == f"go\n{PlanAct().instructions}"
    assert str(instructions) in "".join(map(chr, tree.token[token_node(tree) == 0].tolist()))


def test_tags_are_demonstrated_too() -> None:
    tree = only(place(scripted(lambda _: "never"), Tagged()), Demonstration())
    assert {tree.info[node]["raw"] for node in actions(tree)} == {"<action>a</action>"}
    assert tree.success[-1] == Ternary.YES


def test_marks_do_not_cover_what_the_player_notes() -> None:
    class Rude(PlanAct):
        def __call__(self, text: str):  # type: ignore[no-untyped-def]
            return replace(super().__call__(text), marks={"text": "mine", "well_formed": 7, "mood": "bad"})

    tree = only(place(scripted(lambda _: PLAN), Rude()), Chains(n=1))
    node = actions(tree)[0]
    info = tree.info[node]
    assert (info["text"], tree.well_formed[node], info["mood"]) == ("a", Ternary.YES, "bad")
