"""Generated chat templates: each writes a text within its limits, or is refused with one message."""

import folders
import numpy as np
from tests.damage import refusal
from tests.fuzz import inputs

from bough.policy.chat import ChatRenderer
from bough.policy.template import ChatTemplate, Entry

VALUES = (
    *("m.content", "m['role']", "messages", "messages[-1].content", "nothing", "nothing.here", "tools", "loop", "m"),
    *("1", "0", "2.5", "'a'", "'%s %d'", "[1, 2]", "{'a': 1}", "none", "true", "range(9)", "bos_token", "dict(a=1)"),
    *("m.content.__class__", "''.__class__.__mro__", "namespace(a=1)", "cycler('a')", "strftime_now('%d')"),
)
OPERATORS = ("+", "-", "*", "/", "//", "%", "**", "~", "==", "<", "in", "and", "is", "|", ".", "[", "(")
FILTERS = (
    *("upper", "trim", "length", "tojson", "int", "list", "join(',')", "replace('a', 'bb')", "first", "sum", "abs"),
    *("map('upper')", "default('x')", "sort", "batch(2)", "center(99)", "indent(2)", "round", "dictsort", "unknown"),
)
BLOCKS = (
    *(
        "{{{{ {} }}}}",
        "{{% if {} %}}a{{% endif %}}",
        "{{% set x = {} %}}{{{{ x }}}}",
        "{{%- for y in {} %}}{{{{ y }}}}",
    ),
    *("{{% for y in {} %}}{{{{ y }}}}{{% endfor %}}", "{{% macro f(a) %}}{{{{ a }}}}{{% endmacro %}}{{{{ f({}) }}}}"),
    *("{{# {} #}}", "{{{{ raise_exception({}) }}}}", "{{% generation %}}{}{{% endgeneration %}}", "{{% {} %}}"),
)
BEGIN, END = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}", "<|im_end|>\n{% endfor %}"
REFUSALS = ("got a chat template that ", "got a tokenizer without a chat template; ")
ENTRIES = (Entry("system", "s"), Entry("user", "go"), Entry("assistant", "left"), Entry("user", "on"))


def expression(rng: np.random.Generator, depth: int) -> str:
    if depth == 0 or rng.random() < 0.3:
        return VALUES[rng.integers(len(VALUES))]
    if rng.random() < 0.5:
        return f"{expression(rng, depth - 1)}|{FILTERS[rng.integers(len(FILTERS))]}"
    operator = OPERATORS[rng.integers(len(OPERATORS))]
    return f"{expression(rng, depth - 1)} {operator} {expression(rng, depth - 1)}"


def template(rng: np.random.Generator) -> str:
    text = BEGIN + BLOCKS[rng.integers(len(BLOCKS))].format(expression(rng, int(rng.integers(3)))) + END
    return text if rng.random() < 0.8 else text[: rng.integers(len(text))]


def test_templates_write_or_are_refused() -> None:
    tokenizer = folders.tokenizer(folders.CHATML)
    found, written = ChatTemplate(tokenizer, {}), 0
    for number, rng in inputs("templates"):
        tokenizer.chat_template = template(rng)
        if number % 200:
            message = refusal(lambda: found.frame(ENTRIES, "") and found._text(ENTRIES), ValueError, number)
        else:
            message = refusal(lambda: ChatRenderer(tokenizer, template={}), ValueError, number)
        assert not message or message.startswith(REFUSALS), number
        assert len(message) < 2000, number
        written += not message
    assert written
