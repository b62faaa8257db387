"""The name of a step, as all displays have it."""


def named_step(step: int, *, epochs: int, steps: int) -> str:
    """A step as the display numbers it; metrics and checkpoints count warm-up epochs too.

    Args:
        step: The step, over all phases.
        epochs: Epochs of the warm-up.
        steps: Steps of reinforcement of the run.
    """
    if 0 < step <= epochs:
        return f"warm-up epoch {step} of {epochs}"
    return f"step {max(0, step - epochs)} of {steps}" + (f" (checkpoint {step})" if epochs else "")
