"""Chat templates that do what those of well-known models do, over the tiny tokenizer."""

from tokenizers import AddedToken
from transformers import PreTrainedTokenizerFast

from trainer.tiny import tiny_tokenizer

_SHOW_TOOLS = "{%- for tool in tools or [] %}{{ tool | tojson }}{%- endfor %}"

# Thoughts are put into the last reply and left out of earlier ones; results share one message.
QWEN = (
    _SHOW_TOOLS
    + """\
{%- for message in messages %}
    {%- if message.role == 'tool' %}
        {%- if messages[loop.index0 - 1].role != 'tool' %}{{ '<|im_start|>user' }}{%- endif %}
        {{- '\\n<tool_response>\\n' + message.content + '\\n</tool_response>' }}
        {%- if loop.last or messages[loop.index0 + 1].role != 'tool' %}{{ '<|im_end|>\\n' }}
        {%- endif %}
    {%- elif message.role == 'assistant' %}
        {{- '<|im_start|>assistant\\n' + ('<think>\\n\\n</think>\\n\\n' if loop.last else '') }}
        {{- message.content.split('</think>')[-1].lstrip('\\n') + '<|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{%- endif %}"""
)

# A result names its call; the text does not end with what a message does; thinking has begun.
KIMI_SPECIAL = (
    *("[EOS]", "<|im_user|>", "<|im_assistant|>", "<|im_system|>", "<|im_middle|>"),
    *("<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"),
    *("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
)
KIMI = (
    _SHOW_TOOLS
    + """\
{%- for message in messages %}
    {%- set kind = message.role if message.role in ('user', 'assistant') else 'system' %}
    {{- '<|im_' + kind + '|>' + (message.name or message.role) + '<|im_middle|>' }}
    {%- if message.role == 'tool' %}{{ '## Return of ' + message.tool_call_id + '\\n' }}{%- endif %}
    {%- if message.role == 'assistant' %}{{ '<think></think>' }}{%- endif %}
    {{- message.content + '<|im_end|>' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_assistant|>assistant<|im_middle|><think>' }}{%- endif %}"""
)

# A message ends where the next one begins.
GLM_SPECIAL = ("<|user|>", "<|system|>", "<|assistant|>", "<|observation|>")
GLM = (
    _SHOW_TOOLS
    + """\
{%- for message in messages %}
    {{- '<|observation|>' if message.role == 'tool' else '<|' + message.role + '|>' }}
    {{- '\\n' + message.content }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>' }}{%- endif %}"""
)

# A space stands in front of what ends a message.
LLAMA_SPECIAL = ("<s>", "</s>")
LLAMA = (
    _SHOW_TOOLS
    + """\
{%- for message in messages %}
    {%- if message.role == 'assistant' %}{{ ' ' + message.content + ' </s>' }}
    {%- else %}{{ '<s>[' + message.role + '] ' + message.content + ' [end]' }}{%- endif %}
{%- endfor %}"""
)


def family(
    template: str, *, special: tuple[str, ...] = (), end_of_text: str = "<|endoftext|>"
) -> PreTrainedTokenizerFast:
    """Return the tiny tokenizer with a template and special tokens of its own."""
    tokenizer = tiny_tokenizer()
    added = [AddedToken(it, special=True, normalized=False) for it in special]
    tokenizer.add_tokens(added, special_tokens=True)
    tokenizer.eos_token = end_of_text
    tokenizer.chat_template = template
    return tokenizer
