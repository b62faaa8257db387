"""Prompts of a search to the agent's engine about its nodes."""

from dataclasses import replace
from typing import TypeVar

from bough.ask import Query, prompts
from bough.ask.answered_question import AnsweredQuestion, store_question
from bough.explore.turn_texts import turn_texts
from bough.rollout.cursor import Cursor
from bough.search.node import SearchNode
from bough.search.tree import SearchTree
from bough.tree import Verdict, instructions_in, plain_text, text_in

Read = TypeVar("Read")


def prompt_fields(tree: SearchTree, node: SearchNode) -> dict[str, str]:
    """The prompt fields of a node's state, or of the state before its action if it is not executed."""
    past, observation = turns_to(tree, node)
    return prompts.prompt_fields(instructions_in(tree.rollout.builder.nodes[0].info), past, observation)


def turns_to(tree: SearchTree, node: SearchNode) -> tuple[list[tuple[str, str]], str]:
    """The pairs of observation and action, and the observation after them, of the state in `prompt_fields`."""
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


async def asked(tree: SearchTree, node: SearchNode, query: Query[Read], *, keep: bool = False) -> Read | None:
    """Send a question about a node to the model of a role, with one retry on an engine fault or an unparsable answer.

    A question that exceeds the model's context is not repeated (`RolloutCounts.refused`), nor is one whose answer is
    late.

    Args:
        tree: The search.
        node: The node of the question.
        query: The question; its name distinguishes it from others about the node.
        keep: Whether the info of the node's action holds the question and its answer (`AnsweredQuestion`).

    Returns:
        The parsed answer; None without one, which counts as `RolloutCounts.unanswered`. None is never a number: see
        `mean_vote`.

    Raises:
        BudgetExceeded: when it does not fit a budget.
    """
    for attempt in range(2):
        answer = await tree.rollout.ask(replace(query, name=(*query.name, *place(node), attempt)))
        if answer.value is not None:
            if keep:
                _keep(tree, node, query, answer.texts[-1], answer.value)
            return answer.value
        if answer.final or answer.verdict is Verdict.LATE:
            break
        tree.faults += answer.verdict is Verdict.REFUSED
    unanswered(tree)
    return None


def _keep(tree: SearchTree, node: SearchNode, query: Query[Read], answer: str, value: Read) -> None:
    """Store a question and its answer in the info of the node's action; its name is its kind, and a number if any."""
    info = tree.rollout.builder.nodes[0 if node.draft is None else node.draft.node].info
    kind, *numbers = query.name
    number = value if isinstance(value, float) else None
    question = AnsweredQuestion(system=query.system, text=query.prompt, answer=answer, value=number)
    store_question(info, str(kind), int(numbers[0]) if numbers else 0, question)


def unanswered(tree: SearchTree) -> None:
    """Count a question without an answer."""
    builder = tree.rollout.builder
    builder.counts = replace(builder.counts, unanswered=builder.counts.unanswered + 1)
