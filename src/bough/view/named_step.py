"""The name of a step, as all displays have it."""


def named_step(step: int, *, epochs: int, steps: int) -> str:
    """A step and the last one, counted as in metrics, files and checkpoints: epochs of the warm-up are steps.

    Args:
        step: The step, over all phases.
        epochs: Epochs of the warm-up.
        steps: Steps of reinforcement of the run.
    """
    return f"step {step} of {epochs + steps}" + (" (warm-up)" if 0 < step <= epochs else "")
