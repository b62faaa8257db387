"""Parses mutated calls of each model family: every result is typed, and no text with a tag of a call is an answer.

    python -m scripts.mutated_calls [COUNT]

A row for each family: how many of COUNT texts (10,000) have a call, a bad call alone, or text alone, how many of the
last have a tag of a call outside of thinking (silent), and how many good calls are parsed otherwise when they are
written again (changed). Half of the prompts open thinking. Ends with status 1 when one is silent or changed.
"""

import random
import re
import sys
from collections import Counter
from collections.abc import Sequence

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from bough.policy.calls import FAMILIES, CallFormat
from bough.policy.chat import ChatRenderer
from bough.tree import Action, BadCall, ToolCall
from bough.tree.thinking import find_outside_thinking

COUNT = 10_000
EOS, BOS = "<|eos|>", "<|bos|>"
CHATML = (
    "{% for m in messages %}<|eos|>{{ m.role }}\n{{ m.content }}<|eos|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|eos|>assistant\nOPEN{% endif %}"
)
CALLS = (
    ToolCall(name="find", arguments={"item": 'a "b" é\n]', "count": 2, "at": {"k": [1, None]}}),
    ToolCall(name="shop.buy", arguments={"n": 1}),
)
ACTIONS = (
    Action(text="I look.", calls=CALLS),
    Action(text="<think>\nTea?\n</think>\n\nI look.", calls=CALLS[:1]),
    Action(text="<think>\n\n</think>", calls=CALLS),
)
PIECES = (
    *"{}[]()\"\\\0,:=é\n<>/|'`",
    *("9" * 400, "1e999", "NaN", "[" * 300, "\\ud800", "lambda: 0", "**a", "\u2028"),
    *("<tool_call>", "</tool_call>", "<think>", "</think>", "null", "&lt;", "```"),
)
"""What mutations insert, besides the pieces of the calls themselves."""


def byte_tokenizer(template: str, special: Sequence[str] = (), marks: Sequence[str] = ()) -> PreTrainedTokenizerFast:
    """A tokenizer of bytes with a template.

    Args:
        template: The chat template.
        special: Texts of special tokens, besides the ends of a message.
        marks: Texts of added tokens that are not special.
    """
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE({letter: place for place, letter in enumerate(letters)}, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = decoders.ByteLevel()
    names = dict.fromkeys([EOS, BOS, *special])
    made.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in names])
    made.add_tokens([AddedToken(name, special=False, normalized=False) for name in marks])
    return PreTrainedTokenizerFast(tokenizer_object=made, eos_token=EOS, bos_token=BOS, chat_template=template)


def mutate(text: str, rng: random.Random) -> str:
    """A text with one to four mutations: a piece more, a part less, a part twice or elsewhere, or its end cut off."""
    pieces = (*PIECES, *re.findall(r"<[^<>\s]{2,}>|\[[A-Z_]{3,}\]|\w+", text))
    for _ in range(rng.randint(1, 4)):
        begin = rng.randrange(len(text) + 1)
        end = min(len(text), begin + rng.choice((0, 0, 1, 1, 5, 40)))
        match rng.randrange(8):
            case 0:
                text = text[:begin]
            case 1:
                text = text[:end] + text[begin:]
            case 2:
                place = rng.randrange(len(text) + 1)
                text = text[:place] + text[begin:end] + text[place:]
            case _:
                text = text[:begin] + rng.choice(("", *pieces)) + text[end:]
    return text


def outcome(chat: ChatRenderer, text: str) -> tuple[str, bool, bool]:
    """Whether a text has a "call", a "bad" one or "text"; whether it is silent, and whether a call is changed.

    Raises:
        ValueError: when a call has no name, or a bad one no problem.
    """
    call_format, found = chat.template.format, chat.parse_text(text)
    good = [each for each in found.calls if isinstance(each, ToolCall)]
    if not all(each.problem if isinstance(each, BadCall) else each.name for each in found.calls):
        raise ValueError(f"got {found} of {text!r}; need names and problems")
    silent = not found.calls and find_outside_thinking(chat.call_tags, found.text) is not None
    again = call_format.parse(_ended(call_format, call_format.write(Action(calls=tuple(good))))).calls
    changed = [(each.name, each.arguments) for each in good] != [
        (each.name, each.arguments) for each in again if isinstance(each, ToolCall)
    ]
    return "call" if good else "bad" if found.calls else "text", silent, changed


def _ended(call_format: CallFormat, text: str) -> str:
    return next((text.removesuffix(stop) for stop in call_format.stops if text.endswith(stop)), text)


def outcomes(chat: ChatRenderer, count: int) -> Counter[str]:
    """The outcomes of mutated calls, by name: "call", "bad" and "text", "silent" and "changed"."""
    rng, found = random.Random(0), Counter[str]()
    texts = [chat.template.after_prompt(chat.template.format.write(action)) for action in ACTIONS]
    for number in range(count):
        kind, silent, changed = outcome(chat, mutate(texts[number % len(texts)], rng))
        found.update([kind, *(["silent"] if silent else []), *(["changed"] if changed else [])])
    return found


def shown(found: Counter[str]) -> str:
    """The outcomes in a row."""
    return ", ".join(f"{found[name]} {name}" for name in ("call", "bad", "text", "silent", "changed"))


def family_outcomes(call_format: CallFormat, count: int) -> Counter[str]:
    """The outcomes of a format, half of them in thinking that the prompt opens."""
    found = Counter[str]()
    for opening in ("", "<think>\n"):
        made = byte_tokenizer(CHATML.replace("OPEN", opening), call_format.stops)
        found += outcomes(ChatRenderer(made, template={}, call_format=call_format), count // 2)
    return found


def main(arguments: Sequence[str]) -> int:
    """Print the table; return the exit status."""
    count, good = int(arguments[0]) if arguments else COUNT, True
    for family in FAMILIES:
        found = family_outcomes(family.call_format, count)
        print(f"{family.name} | {shown(found)}", flush=True)
        good &= not found["silent"] and not found["changed"]
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
