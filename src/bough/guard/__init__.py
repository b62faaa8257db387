"""Guards: the decision about each action before it is executed."""

from bough.guard.guard import Allow, Decision, Deny, Guard, check_action, denied_observation

__all__ = ["Allow", "Decision", "Deny", "Guard", "check_action", "denied_observation"]
