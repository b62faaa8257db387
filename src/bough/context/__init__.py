"""Contexts: the part of the history in the policy's prompt."""

from bough.context.admissible_action import AdmissibleAction
from bough.context.context import Context, ContextInputs, ContextUpdate, Renderer, Turn, conversation
from bough.context.full import Full
from bough.context.parse import Plain, Tagged
from bough.context.parser import (
    CallParser,
    GrammarParser,
    Parsed,
    Parser,
    PromptedParser,
    as_written,
    full_instructions,
    grammar_of,
    parse_tokens,
)
from bough.context.plan import PlanAct, Planned
from bough.context.search_blocks import SearchBlocks
from bough.context.tagged_thinking import TaggedThinking
from bough.context.thinking_calls import ThinkingCalls
from bough.context.tool_calls import ToolCalls
from bough.context.whole_text import WholeText
from bough.context.window import Window

__all__ = [
    "AdmissibleAction",
    "CallParser",
    "Context",
    "ContextInputs",
    "ContextUpdate",
    "Full",
    "GrammarParser",
    "Parsed",
    "Parser",
    "Plain",
    "PlanAct",
    "Planned",
    "PromptedParser",
    "Renderer",
    "SearchBlocks",
    "Tagged",
    "TaggedThinking",
    "ThinkingCalls",
    "ToolCalls",
    "Turn",
    "WholeText",
    "Window",
    "as_written",
    "conversation",
    "full_instructions",
    "grammar_of",
    "parse_tokens",
]
