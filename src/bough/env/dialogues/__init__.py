"""Scenarios of dialogues, each a user with private goals: questions, bargains, secrets."""

from bough.env.dialogues.bargain import Bargain
from bough.env.dialogues.questions import Questions
from bough.env.dialogues.scenario import Exchange, ExchangeResult, Scenario
from bough.env.dialogues.secret import Secret

__all__ = ["Bargain", "Exchange", "ExchangeResult", "Questions", "Scenario", "Secret"]
