"""A reward function."""


def reward(task, result):
    return result == task["data"]["answer"]
