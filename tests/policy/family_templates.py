"""Small chat templates that write tools, calls and results as model families do; written for the tests."""

from scripts.templates import tokenizer
from transformers import PreTrainedTokenizerFast

HEAD = "{%- if tools -%}{{- '<|im_start|>system\n' + tools|tojson + '<|im_end|>\n' -}}{%- endif -%}"
BEGIN = (
    "{%- for message in messages -%}"
    "{%- if message.role == 'tool' -%}{{- '<|im_start|>tool\n' + message.content + '<|im_end|>\n' -}}"
    "{%- elif message.role != 'assistant' -%}"
    "{{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' -}}"
    "{%- else -%}{{- '<|im_start|>assistant\n' -}}"
)
# Empty thinking where the prompt opens it, as Qwen3.5 has it.
EMPTY = "{%- if '</think>' not in message.content -%}{{- '<think>\n\n</think>\n\n' -}}{%- endif -%}"
OPENED = (
    "{%- if '</think>' in message.content and '<think>' not in message.content -%}{{- '<think>\n' -}}{%- endif -%}"
    + EMPTY
)
SAID = "{{- message.content -}}"
END = (
    "{{- '<|im_end|>\n' -}}{%- endif -%}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}PROMPT{%- endif -%}"
)
CALLS = "{%- for call in message.tool_calls or [] -%}{%- set f = call.function -%}CALL{%- endfor -%}"
EACH = "{%- for name, value in f.arguments.items() -%}ARGUMENT{%- endfor -%}"
VALUE = "(value if value is string else value|tojson)"

XML = (
    "{{- ('\n\n' if loop.first and message.content else '\n' if not loop.first else '')"
    " + '<tool_call>\n<function=' + f.name + '>\n' -}}"
    + EACH.replace("ARGUMENT", "{{- '<parameter=' + name + '>\n' + " + VALUE + " + '\n</parameter>\n' -}}")
    + "{{- '</function>\n</tool_call>' -}}"
)
GLM = (
    "{{- ('\n' if message.content or not loop.first else '') + '<tool_call>' + f.name + '\n' -}}"
    + EACH.replace(
        "ARGUMENT",
        "{{- '<arg_key>' + name + '</arg_key>\n<arg_value>' + " + VALUE + " + '</arg_value>\n' -}}",
    )
    + "{{- '</tool_call>' -}}"
)
MINIMAX = (
    "{%- if loop.first -%}{{- ('\n' if message.content else '') + '<minimax:tool_call>\n' -}}{%- endif -%}"
    "{{- '<invoke name=\"' + f.name + '\">\n' -}}"
    + EACH.replace("ARGUMENT", "{{- '<parameter name=\"' + name + '\">' + " + VALUE + " + '</parameter>\n' -}}")
    + "{{- '</invoke>\n' -}}{%- if loop.last -%}{{- '</minimax:tool_call>' -}}{%- endif -%}"
)
KIMI = (
    "{%- if loop.first -%}{{- '<|tool_calls_section_begin|>' -}}{%- endif -%}"
    "{{- '<|tool_call_begin|>functions.' + f.name + ':' + loop.index0|string + '<|tool_call_argument_begin|>'"
    " + f.arguments|tojson + '<|tool_call_end|>' -}}"
    "{%- if loop.last -%}{{- '<|tool_calls_section_end|>' -}}{%- endif -%}"
)


def _listed(start: str, end: str, between: str = "\n") -> str:
    return (
        "{%- if loop.first -%}{{- ('" + between + "' if message.content else '') + '" + start + "[' -}}{%- endif -%}"
        "{{- '{\"name\": ' + f.name|tojson + ', \"arguments\": ' + f.arguments|tojson + '}' -}}"
        "{{- ']" + end + "' if loop.last else ', ' -}}"
    )


def _deepseek(call: str, between: str) -> str:
    bar, low = "\uff5c", "\u2581"
    begin, end, one, gap, stop = (
        f"<{bar}tool{low}{name}{bar}>"
        for name in (f"calls{low}begin", f"calls{low}end", f"call{low}begin", "sep", f"call{low}end")
    )
    written = call.replace("SEP", gap)
    return (
        "{%- if loop.first -%}{{- '" + begin + "' -}}{%- else -%}{{- '" + between + "' -}}{%- endif -%}"
        "{{- '" + one + "' + " + written + " + '" + stop + "' -}}"
        "{%- if loop.last -%}{{- '" + end + "' -}}{%- endif -%}"
    )


def _made(call: str, before: str = "", prompt: str = "", head: str = HEAD) -> str:
    written = CALLS.replace("CALL", call) if call else ""
    return head + BEGIN + before + SAID + written + END.replace("PROMPT", prompt)


HARMONY = (
    "{%- if tools -%}{{- '<|start|>developer<|message|>' + tools|tojson + '<|end|>' -}}{%- endif -%}"
    "{%- for message in messages -%}"
    "{%- if message.role == 'assistant' -%}{%- if message.tool_calls -%}"
    "{%- set f = message.tool_calls[0].function -%}"
    "{{- '<|start|>assistant to=functions.' + f.name + '<|channel|>commentary json<|message|>' + f.arguments|tojson"
    " + '<|call|>' -}}"
    "{%- else -%}{{- '<|start|>assistant<|channel|>final<|message|>' + message.content -}}"
    "{{- '<|return|>' if loop.last and not add_generation_prompt else '<|end|>' -}}{%- endif -%}"
    "{%- elif message.role == 'tool' -%}"
    "{%- if not messages[loop.index0 - 1].tool_calls and messages[loop.index0 - 1].role != 'tool' -%}"
    "{{- raise_exception('a result without a call') -}}{%- endif -%}"
    "{{- '<|start|>functions to=assistant<|channel|>commentary<|message|>' + message.content + '<|end|>' -}}"
    "{%- else -%}{{- '<|start|>' + message.role + '<|message|>' + message.content + '<|end|>' -}}{%- endif -%}"
    "{%- endfor -%}{%- if add_generation_prompt -%}{{- '<|start|>assistant' -}}{%- endif -%}"
)
GEMMA = (
    "{%- if messages[0].role == 'system' -%}{{- raise_exception('no system role') -}}{%- endif -%}"
    "{%- for message in messages -%}"
    "{{- '<start_of_turn>' + ('model' if message.role == 'assistant' else message.role) + '\n' -}}"
    "{{- message.content + '<end_of_turn>\n' -}}"
    "{%- endfor -%}{%- if add_generation_prompt -%}{{- '<start_of_turn>model\n' -}}{%- endif -%}"
)
OPENS = "{{- '<think>\n' -}}"

TEMPLATES: dict[str, str] = {
    "Qwen3-Coder": _made(XML),
    "Qwen3.5": _made(XML, OPENED, OPENS),
    "GLM-4.5": _made(GLM, "{%- if '</think>' not in message.content -%}{{- '\n<think></think>\n' -}}{%- endif -%}"),
    "GLM, opened": _made(GLM, "{{- '</think>' if '</think>' not in message.content -}}", "{{- '<think>' -}}"),
    "MiniMax-M2": _made(MINIMAX, "", OPENS),
    "Kimi-K2": _made(KIMI),
    "DeepSeek V3.1": _made(_deepseek("f.name + 'SEP' + f.arguments|tojson", "")),
    "DeepSeek R1": _made(
        _deepseek("'functionSEP' + f.name + '\n```json\n' + f.arguments|tojson + '\n```'", "\n"), "", OPENS
    ),
    "Nemotron Nano 2": _made(_listed("<TOOLCALL>", "</TOOLCALL>")),
    "Granite 3": _made("", "{#- <|tool_call|> <|start_of_role|> -#}"),
    "Phi-4-mini": _made("", "{#- <|/tool|> -#}", head=HEAD.replace("<|im_start|>system\n", "<|tool|>")),
    "LFM2": _made("", "", head=HEAD.replace("<|im_start|>system\n", "<|im_start|>system\n<|tool_list_start|>")),
    "gpt-oss": HARMONY,
    "Gemma 3": GEMMA,
}
"""By family; those of Granite, Phi-4-mini and LFM2 write no calls."""


def family_tokenizer(name: str) -> PreTrainedTokenizerFast:
    """A tokenizer of bytes with the template and the marks of a family."""
    return tokenizer(TEMPLATES[name])
