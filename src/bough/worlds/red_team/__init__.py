"""Red teaming: an attacker talks to a target model, and a safety classifier rates the replies."""

from bough.worlds.red_team.env import RedTeam, ScriptedClassifier, ScriptedTarget

__all__ = ["RedTeam", "ScriptedClassifier", "ScriptedTarget"]
