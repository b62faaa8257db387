"""Checks the chat templates of a folder: the format of calls that is found, and what is written, parsed and rendered.

    python -m scripts.templates FOLDER...

A row for each `.jinja` file: its format and where it was found, how many of twelve actions are parsed as written, how
many conversations without sampled tokens equal `apply_chat_template`, and the outcomes of mutated calls. The tokenizer
is one of bytes, with the template's marks as special tokens. Ends with status 1 when an action, a conversation or a
mutated call fails.
"""

import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from scripts.mutated_calls import BOS, EOS, byte_tokenizer, outcomes, shown
from transformers import PreTrainedTokenizerFast
from transformers.utils.chat_template_utils import render_jinja_template

from bough.policy.chat import ChatRenderer
from bough.tree import Action, Message, Tool, ToolCall, tool_record

MUTATIONS = 200
PLAIN = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>")
BAR, OTHER = "[|\uff5c]", "[^|\uff5c<>{}'\"]+"
SPECIAL = re.compile(
    rf"<{BAR}{OTHER}{BAR}?>|<{OTHER}{BAR}>|\[/?[A-Z_]{{3,}}\]|\[e~\[|\]~b\]|</?(?:SPECIAL_\d+|seed:[a-z]+|"
    r"start_of_turn|end_of_turn|sep|role|assistant|user|[a-z]+_of_sentence)>"
)
"""Marks that tokenizers have as special tokens."""

TOOLS = (
    Tool(
        name="find",
        description="Finds an item.",
        schema={"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]},
    ),
    Tool(name="buy", description="Buys it.", schema={"type": "object", "properties": {}}),
)


def call(tool: str, **arguments: object) -> ToolCall:
    """A call without an id."""
    return ToolCall(name=tool, arguments=arguments)


ACTIONS: dict[str, Action] = {
    "no call": Action(text="Tea costs 3 euros."),
    "nothing": Action(),
    "one call": Action(calls=(call("find", item="tea"),)),
    "a text and a call": Action(text="I look.", calls=(call("find", item="tea"),)),
    "three calls": Action(calls=(call("find", item="tea"), call("buy"), call("shop.pay", n=2))),
    "thinking and an answer": Action(text="<think>\nTea?\n</think>\n\nIt is tea."),
    "thinking and a call": Action(text="<think>\nTea?\n</think>", calls=(call("find", item="tea"),)),
    "empty thinking": Action(text="<think>\n\n</think>\n\nI look.", calls=(call("find", item="tea"),)),
    "open thinking": Action(text="<think>\nTea"),
    "unicode and quotes": Action(calls=(call("find", item="é 日本 \"a\" 'b' \\ \n\t <b> </b>"),)),
    "nested JSON": Action(calls=(call("find", at={"a": [1, None, {"b": True}], "c": -1.5}, tags=[], o={}),)),
    "values like others": Action(
        calls=(call("find", a="2", b="true", c="null", d="[1]", e="", f=" x ", g='"q"', h="None", i=1, j=None),)
    ),
}
"""Twelve actions that are parsed as they are written."""


def tokenizer(template: str) -> PreTrainedTokenizerFast:
    """A tokenizer of bytes, with the marks of a template."""
    marks = [mark for mark in SPECIAL.findall(template + _rendered(template)) if mark not in PLAIN]
    marks += ["<|return|>", "<|call|>"] if "<|call|>" in template else []
    return byte_tokenizer(template, marks, [mark for mark in PLAIN if mark in template])


def _rendered(template: str) -> str:
    """A short conversation; some templates put their marks together."""
    talk = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]
    with suppress(Exception):  # A template is a program, which may raise anything.
        return render_jinja_template([talk], chat_template=template, eos_token=EOS, bos_token=BOS)[0][0]
    return ""


def same(one: Action, other: Action) -> bool:
    """Whether two actions are equal but for the ids of calls, which some formats derive."""
    first, second = (
        replace(
            each, calls=tuple(replace(call, call_id="") if isinstance(call, ToolCall) else call for call in each.calls)
        )
        for each in (one, other)
    )
    return first == second


def lost_actions(chat: ChatRenderer) -> list[str]:
    """The names of the actions that are not parsed as they are written."""
    return [name for name, action in ACTIONS.items() if not same(chat.parse(chat.write(action)), action)]


def conversations(chat: ChatRenderer) -> list[tuple[tuple[Message, ...], tuple[Tool, ...]]]:
    """Conversations without sampled tokens, of what the template writes by itself."""
    user, said = Message(role="user", content="Tea, please."), Message(role="assistant", content="It costs 3 euros.")
    template = chat.template
    tools = TOOLS if template.takes_tools and not template.tools_in_message else ()
    found: list[tuple[tuple[Message, ...], tuple[Tool, ...]]] = [((user,), ()), ((user, said, user), ())]
    if template.takes_system:
        found.append(((Message(role="system", content="Shop well."), user), ()))
    if tools:
        found.append(((user,), tools))
    if template.writes_calls:
        called = replace(call("find", item="tea"), call_id="a1b2c3d4e")
        asked = Message(role="assistant", content="", tool_calls=(called,))
        found.append(((user, asked, Message(role="tool", content="3 euros", call_id="a1b2c3d4e"), said, user), tools))
    return found


def unequal(chat: ChatRenderer, made: PreTrainedTokenizerFast) -> int:
    """How many conversations are rendered otherwise than by `apply_chat_template`."""
    wrong = 0
    for messages, tools in conversations(chat):
        text = made.apply_chat_template(
            chat.messages(messages),
            tools=[tool_record(tool) for tool in tools] or cast("Any", chat.template.no_tools),
            tokenize=False,
            add_generation_prompt=True,
        )
        wrong += list(chat.render(messages, tools)) != made.encode(str(text), add_special_tokens=False)
    return wrong


def row(file: Path, mutations: int) -> tuple[str, bool]:
    """The row of a file, and whether nothing failed."""
    template = file.read_text(encoding="utf-8")
    made = tokenizer(template)
    try:
        chat = ChatRenderer(made, template={})
    except ValueError as error:
        return f"{file.stem} | refused: {error!s:.90}", True
    lost, wrong, total = lost_actions(chat), unequal(chat, made), len(conversations(chat))
    found = outcomes(chat, mutations)
    columns = (
        file.stem,
        chat.call_format,
        f"{len(ACTIONS) - len(lost)} of {len(ACTIONS)}{' without ' + '; '.join(lost) if lost else ''}",
        f"{total - wrong} of {total}",
        shown(found),
    )
    return " | ".join(columns), not (lost or wrong or found["silent"] or found["changed"])


def main(folders: Sequence[str]) -> int:
    """Print the table of the files in folders; return the exit status."""
    if not folders:
        print(__doc__)
        return 2
    files = sorted(file for folder in folders for file in Path(folder).glob("*.jinja"))
    good = True
    for file in files:
        text, passed = row(file, MUTATIONS)
        print(text, flush=True)
        good &= passed
    return 0 if good and files else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
