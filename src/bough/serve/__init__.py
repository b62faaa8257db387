"""OpenAI's and Anthropic's APIs over an engine. Needs the extra `serve` when a server starts."""

from bough.serve.conversation import Conversations
from bough.serve.errors import ApiError
from bough.serve.session import EngineSession, Prompt, Session, Sessions

__all__ = [
    "ApiError",
    "Conversations",
    "EngineSession",
    "Prompt",
    "Session",
    "Sessions",
]
