"""Prompts of a search to the agent's engine about its nodes."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from bough.appraise import prompts
from bough.appraise.prompts import Reader
from bough.engine import EngineFault, Sampling
from bough.explore.turn_texts import turn_texts
from bough.needs import POLICY
from bough.rollout.agent import QuestionTooLong
from bough.rollout.cursor import Cursor
from bough.search.node import SearchNode
from bough.search.tree import SearchTree
from bough.tree import AnsweredQuestion, instructions_in, plain_text, store_question, text_in

Answer = TypeVar("Answer")


def story(tree: SearchTree, node: SearchNode) -> dict[str, str]:
    """The prompt fields of a node's state, or of the state before its action if it is not executed."""
    past, observation = turns_to(tree, node)
    return prompts.story(instructions_in(tree.rollout.builder.nodes[0].info), past, observation)


def turns_to(tree: SearchTree, node: SearchNode) -> tuple[list[tuple[str, str]], str]:
    """The pairs of observation and action, and the observation after them, of the state that `story` describes."""
    nodes, draft = tree.rollout.builder.nodes, node.draft
    if node.ended and draft is not None:
        past = turn_texts(draft.cursor.past)
        past.append((plain_text(draft.cursor.state.observation), draft.parsed.text))
        observation = text_in(nodes[tree.rollout.answered[draft.node]].info) or ""
    else:
        cursor = node.at if isinstance(node.at, Cursor) else None
        if cursor is None and draft is not None:
            cursor = draft.cursor
        if cursor is None:
            raise ValueError(
                f"turns_to: got {node}, without a state or an action; need the root, or a node with an action"
            )
        past = turn_texts(cursor.past)
        observation = plain_text(cursor.state.observation)
    return past, observation


def place(node: SearchNode) -> tuple[int, ...]:
    """The branches that identify a node, for the names of questions."""
    return () if node.draft is None else node.draft.branches


async def asked(
    tree: SearchTree,
    node: SearchNode,
    *name: int | str,
    system: str,
    text: str,
    read: Reader[Answer],
    sampling: Sampling | None = None,
    role: str = POLICY,
    keep: bool = False,
) -> Answer | None:
    """Send a question about a node to the model of a role, with one retry on an engine fault or an unparsable answer.

    A question that exceeds the model's context is not repeated; `RolloutCounts.refused` counts it.

    Args:
        tree: The search.
        node: The node of the question.
        name: Distinguishes the question from others about the node.
        system: The system prompt.
        text: The question.
        read: Parses the answer.
        sampling: Sampling settings of the answer; None for the agent's.
        role: The role whose model answers.
        keep: Whether the info of the node's action holds the question and its answer (`bough.tree.AnsweredQuestion`).

    Returns:
        The parsed answer; None without one, which counts as `RolloutCounts.unanswered`.

    Raises:
        BudgetExceeded: when it does not fit a budget.
    """
    for attempt in range(2):
        try:
            generated = await tree.rollout.ask(system, text, *name, *place(node), attempt, sampling=sampling, role=role)
        except QuestionTooLong:
            break
        except EngineFault:
            tree.faults += 1
            continue
        answer = read(generated)
        if answer is not None:
            if keep:
                value = answer if isinstance(answer, float) else None
                _keep(tree, node, name, AnsweredQuestion(system=system, text=text, answer=generated, value=value))
            return answer
    unanswered(tree)
    return None


def _keep(tree: SearchTree, node: SearchNode, name: Sequence[int | str], question: AnsweredQuestion) -> None:
    """Store a question and its answer in the info of the node's action; `name` is its kind, and a number if any."""
    info = tree.rollout.builder.nodes[0 if node.draft is None else node.draft.node].info
    number = name[1] if len(name) > 1 else 0
    store_question(info, str(name[0]), int(number), question)


def unanswered(tree: SearchTree) -> None:
    """Count a question without an answer."""
    builder = tree.rollout.builder
    builder.counts = replace(builder.counts, unanswered=builder.counts.unanswered + 1)
