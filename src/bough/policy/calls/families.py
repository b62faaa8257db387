"""The table of formats: one row a family, in the order in which they are tried."""

from dataclasses import dataclass

from bough.policy.calls.arg_values import ArgValues
from bough.policy.calls.deepseek import BEGIN, DeepSeek
from bough.policy.calls.format import CallFormat
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A row of the table.

    Attributes:
        name: The models, for people.
        call_format: Their format.
        template_marks: Texts that a chat template of the family contains, all of them; () for a family that is found
            only by a call that its template writes. They count where the template writes no calls, or in an unknown
            format.
    """

    name: str
    call_format: CallFormat
    template_marks: tuple[str, ...] = ()


_DSML = "\uff5cDSML\uff5c"

FAMILIES: tuple[Family, ...] = (
    Family(name="Mistral to version 7", call_format=Mistral()),
    Family(name="Mistral to version 7", call_format=Mistral(space=""), template_marks=("[TOOL_CALLS]",)),
    Family(name="Mistral from version 11", call_format=Mistral(named=True), template_marks=("[TOOL_CALLS]", "[ARGS]")),
    Family(
        name="Mistral of version 11",
        call_format=Mistral(named=True, ids=True),
        template_marks=("[TOOL_CALLS]", "[CALL_ID]"),
    ),
    Family(
        name="Hermes, Qwen2.5, Qwen3 and Granite 4", call_format=Hermes(), template_marks=("<tool_call>", '"arguments"')
    ),
    Family(name="Qwen3-Coder and Qwen3.5", call_format=XmlParameters(), template_marks=("<tool_call>", "<function=")),
    Family(name="Nemotron 3", call_format=XmlParameters(before="\n", after="\n")),
    Family(name="StepFun", call_format=XmlParameters(before="", between="")),
    Family(
        name="Seed",
        call_format=XmlParameters(start="<seed:tool_call>", end="</seed:tool_call>", line=""),
        template_marks=("<seed:tool_call>",),
    ),
    Family(name="GLM-4.5 and 4.6", call_format=ArgValues(), template_marks=("<tool_call>", "<arg_key>")),
    Family(name="GLM-4.7", call_format=ArgValues(line="", before="", between="")),
    Family(
        name="Hunyuan",
        call_format=ArgValues(suffix=":opensource", around=True, before=""),
        template_marks=("<arg_key:opensource>",),
    ),
    Family(name="DeepSeek V3.1", call_format=DeepSeek(), template_marks=(BEGIN,)),
    Family(name="DeepSeek R1 and V3", call_format=DeepSeek(fenced=True), template_marks=(BEGIN, "```json")),
    Family(
        name="DeepSeek V3.2",
        call_format=Invoke(
            start=f"<{_DSML}function_calls>", end=f"</{_DSML}function_calls>", prefix=_DSML, before="\n\n", typed=True
        ),
    ),
    Family(
        name="DeepSeek V4",
        call_format=Invoke(
            start=f"<{_DSML}tool_calls>",
            end=f"</{_DSML}tool_calls>",
            prefix=_DSML,
            before="\n\n",
            typed=True,
            bare="\n",
        ),
    ),
    Family(
        name="MiniMax-M2",
        call_format=Invoke(start="<minimax:tool_call>", end="</minimax:tool_call>"),
        template_marks=("<minimax:tool_call>",),
    ),
    Family(name="Kimi-K2", call_format=Kimi(), template_marks=("<|tool_calls_section_begin|>",)),
    Family(name="gpt-oss", call_format=Harmony(), template_marks=("<|channel|>", "to=functions.", "<|call|>")),
    Family(
        name="Phi-4-mini",
        call_format=JsonList(start="<|tool_call|>", end="<|/tool_call|>", before="", single=True),
        template_marks=("<|tool|>", "<|/tool|>"),
    ),
    Family(
        name="Granite 3",
        call_format=JsonList(start="<|tool_call|>"),
        template_marks=("<|tool_call|>", "<|start_of_role|>"),
    ),
    Family(
        name="Nemotron Nano 2 and Super",
        call_format=JsonList(start="<TOOLCALL>", end="</TOOLCALL>"),
        template_marks=("<TOOLCALL>",),
    ),
    Family(
        name="Jamba and Apriel",
        call_format=JsonList(start="<tool_calls>", end="</tool_calls>"),
        template_marks=("<tool_calls>",),
    ),
    Family(name="Llama 3", call_format=Llama(), template_marks=("<|python_tag|>",)),
    Family(name="Llama 3.2 and 4, Python calls", call_format=Pythonic()),
    Family(
        name="LFM2",
        call_format=Pythonic(start="<|tool_call_start|>", end="<|tool_call_end|>"),
        template_marks=("<|tool_list_start|>",),
    ),
    Family(name="Gemma 3", call_format=ToolCode(), template_marks=("<start_of_turn>",)),
)
