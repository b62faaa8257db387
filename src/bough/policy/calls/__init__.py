"""Formats in which model families write calls of tools."""

from bough.policy.calls.find import find_format
from bough.policy.calls.format import CallFormat
from bough.policy.calls.hermes import Hermes
from bough.policy.calls.llama import Llama
from bough.policy.calls.mistral import Mistral
from bough.policy.calls.pythonic import Pythonic
from bough.policy.calls.thinking import thinking_end

__all__ = ["CallFormat", "Hermes", "Llama", "Mistral", "Pythonic", "find_format", "thinking_end"]
