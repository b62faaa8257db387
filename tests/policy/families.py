"""Chat templates with tools, written afresh in the documented formats of four families."""

QWEN25 = (
    "{%- if tools -%}"
    "{{- '<|im_start|>system\n' + (messages[0].content if messages[0].role == 'system' else 'You help.') -}}"
    "{{- '\n\n# Tools\n<tools>' -}}{%- for tool in tools -%}{{- '\n' + tool|tojson -}}{%- endfor -%}"
    "{{- '\n</tools>\nAnswer with <tool_call> blocks.<|im_end|>\n' -}}"
    "{%- elif messages[0].role == 'system' -%}{{- '<|im_start|>system\n' + messages[0].content + '<|im_end|>\n' -}}"
    "{%- else -%}{{- '<|im_start|>system\nYou help.<|im_end|>\n' -}}{%- endif -%}"
    "{%- for message in messages -%}"
    "{%- if message.role == 'user' or (message.role == 'system' and not loop.first) -%}"
    "{{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' -}}"
    "{%- elif message.role == 'assistant' -%}{{- '<|im_start|>assistant' -}}"
    "{%- if message.content -%}{{- '\n' + KEPT -}}{%- endif -%}"
    "{%- for call in message.tool_calls or [] -%}"
    '{{- \'\n<tool_call>\n{"name": "\' + call.function.name + \'", "arguments": \' -}}'
    "{{- call.function.arguments|tojson + '}\n</tool_call>' -}}"
    "{%- endfor -%}{{- '<|im_end|>\n' -}}"
    "{%- elif message.role == 'tool' -%}"
    "{%- if loop.first or messages[loop.index0 - 1].role != 'tool' -%}{{- '<|im_start|>user' -}}{%- endif -%}"
    "{{- '\n<tool_response>\n' + message.content + '\n</tool_response>' -}}"
    "{%- if loop.last or messages[loop.index0 + 1].role != 'tool' -%}{{- '<|im_end|>\n' -}}{%- endif -%}"
    "{%- endif -%}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}{%- endif -%}"
)
# Qwen3's drops the thinking before the last user message, and shows an empty one in the last message.
QWEN3 = (
    "{%- set ns = namespace(last=0) -%}"
    "{%- for message in messages -%}{%- if message.role == 'user' -%}{%- set ns.last = loop.index0 -%}{%- endif -%}"
    "{%- endfor -%}"
) + QWEN25.replace(
    "{%- if message.content -%}{{- '\n' + KEPT -}}{%- endif -%}",
    "{%- set parts = message.content.split('</think>') -%}"
    "{%- set said = parts[-1].lstrip('\n') if parts|length > 1 else message.content -%}"
    "{%- set thought = parts[0].split('<think>')[-1].strip('\n') if parts|length > 1 else '' -%}"
    "{%- if loop.index0 > ns.last and (loop.last or thought) -%}"
    "{{- '\n<think>\n' + thought + '\n</think>\n\n' + said -}}"
    "{%- elif said -%}{{- '\n' + said -}}{%- endif -%}",
)
QWEN25 = QWEN25.replace("KEPT", "message.content")
LLAMA32 = (
    "{{- bos_token -}}"
    "{{- '<|start_header_id|>system<|end_header_id|>\n\n' -}}"
    "{%- if messages[0].role == 'system' -%}{{- messages[0].content|trim -}}{%- endif -%}"
    '{%- if tools -%}{{- \'\nAnswer with {"name": ..., "parameters": ...}.\' -}}'
    "{%- for tool in tools -%}{{- '\n' + tool|tojson(indent=4) -}}{%- endfor -%}{%- endif -%}"
    "{{- '<|eot_id|>' -}}"
    "{%- for message in messages -%}"
    "{%- if message.role == 'tool' -%}"
    "{{- '<|start_header_id|>ipython<|end_header_id|>\n\n' + message.content|tojson + '<|eot_id|>' -}}"
    "{%- elif message.tool_calls -%}"
    "{%- if message.tool_calls|length != 1 -%}{{- raise_exception('single calls only') -}}{%- endif -%}"
    "{%- set call = message.tool_calls[0].function -%}"
    '{{- \'<|start_header_id|>assistant<|end_header_id|>\n\n{"name": "\' + call.name + \'", "parameters": \' -}}'
    "{{- call.arguments|tojson + '}<|eot_id|>' -}}"
    "{%- elif message.role != 'system' or not loop.first -%}"
    "{{- '<|start_header_id|>' + message.role + '<|end_header_id|>\n\n' + message.content|trim + '<|eot_id|>' -}}"
    "{%- endif -%}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' -}}{%- endif -%}"
)
# Mistral's shows the tools before the last user message, and refuses roles that do not alternate.
MISTRAL = (
    "{%- set system = messages[0].content if messages[0].role == 'system' else '' -%}"
    "{%- set talk = messages[1:] if messages[0].role == 'system' else messages -%}"
    "{%- set ns = namespace(turn=0, last=0) -%}"
    "{%- for message in talk -%}"
    "{%- if message.role == 'user' -%}{%- set ns.last = loop.index0 -%}{%- endif -%}"
    "{%- if message.role == 'user' or (message.role == 'assistant' and not message.tool_calls) -%}"
    "{%- if (message.role == 'user') != (ns.turn % 2 == 0) -%}"
    "{{- raise_exception('roles must alternate') -}}{%- endif -%}"
    "{%- set ns.turn = ns.turn + 1 -%}{%- endif -%}{%- endfor -%}"
    "{{- bos_token -}}"
    "{%- for message in talk -%}"
    "{%- if message.role == 'user' -%}"
    "{%- if tools and loop.index0 == ns.last -%}"
    "{{- '[AVAILABLE_TOOLS] ' + tools|tojson + '[/AVAILABLE_TOOLS]' -}}{%- endif -%}"
    "{{- '[INST] ' -}}{%- if system and loop.index0 == ns.last -%}{{- system + '\n\n' -}}{%- endif -%}"
    "{{- message.content + '[/INST]' -}}"
    "{%- elif message.tool_calls -%}{{- '[TOOL_CALLS] [' -}}"
    "{%- for call in message.tool_calls -%}"
    "{%- if call.id is not defined or call.id|length != 9 -%}"
    "{{- raise_exception('ids have 9 characters') -}}{%- endif -%}"
    '{{- \'{"name": "\' + call.function.name + \'", "arguments": \' + call.function.arguments|tojson -}}'
    "{{- ', \"id\": \"' + call.id + '\"}' -}}{%- if not loop.last -%}{{- ', ' -}}{%- endif -%}{%- endfor -%}"
    "{{- ']' + eos_token -}}"
    "{%- elif message.role == 'tool' -%}"
    "{%- if message.tool_call_id is not defined or message.tool_call_id|length != 9 -%}"
    "{{- raise_exception('ids have 9 characters') -}}{%- endif -%}"
    '{{- \'[TOOL_RESULTS] {"content": \' + message.content|tojson + \', "call_id": "\' + message.tool_call_id -}}'
    "{{- '\"}[/TOOL_RESULTS]' -}}"
    "{%- elif message.role == 'assistant' -%}{{- ' ' + message.content + eos_token -}}"
    "{%- else -%}{{- raise_exception('unknown role') -}}{%- endif -%}"
    "{%- endfor -%}"
)
MARKS = [
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>"),
    *("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|python_tag|>"),
    *(
        "[INST]",
        "[/INST]",
        "[AVAILABLE_TOOLS]",
        "[/AVAILABLE_TOOLS]",
        "[TOOL_CALLS]",
        "[TOOL_RESULTS]",
        "[/TOOL_RESULTS]",
    ),
]
