"""Reward functions."""


def reward(task, result):
    return result == task["data"]["answer"]


def changing(task, result):
    """Takes what it reads out of the task and the result."""
    return {"reward": task["data"]["rewards"].pop() + result["parts"].pop(), "success": False}
