"""The reward of the agents of this folder."""


def reward(task: dict, result: str) -> float:
    """1 for an answer with the number of letters, 0.25 for another one about letters."""
    return 1.0 if str(len(task["data"]["word"])) in result else 0.25 * ("letters" in result)
