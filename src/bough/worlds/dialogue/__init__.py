"""Dialogues of an agent with a user that has private goals: questions, bargains, secrets."""

from bough.worlds.dialogue.env import Dialogue, ScriptedUser

__all__ = ["Dialogue", "ScriptedUser"]
