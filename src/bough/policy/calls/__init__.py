"""Formats in which model families write calls of tools."""

from bough.policy.calls.arg_values import ArgValues
from bough.policy.calls.call_rules import RestrictedFormat, action_grammar
from bough.policy.calls.deepseek import DeepSeek
from bough.policy.calls.families import FAMILIES, Family
from bough.policy.calls.find import family_by_calls, family_by_marks, family_name
from bough.policy.calls.format import CallFormat, PlainFormat
from bough.policy.calls.harmony import Harmony
from bough.policy.calls.hermes import Hermes
from bough.policy.calls.invoke import Invoke
from bough.policy.calls.json_list import JsonList
from bough.policy.calls.kimi import Kimi
from bough.policy.calls.llama import Llama
from bough.policy.calls.mistral import Mistral
from bough.policy.calls.pythonic import Pythonic
from bough.policy.calls.tool_code import ToolCode
from bough.policy.calls.xml_parameters import XmlParameters

__all__ = [
    "FAMILIES",
    "ArgValues",
    "CallFormat",
    "DeepSeek",
    "Family",
    "Harmony",
    "Hermes",
    "Invoke",
    "JsonList",
    "Kimi",
    "Llama",
    "Mistral",
    "PlainFormat",
    "Pythonic",
    "RestrictedFormat",
    "ToolCode",
    "XmlParameters",
    "action_grammar",
    "family_by_calls",
    "family_by_marks",
    "family_name",
]
