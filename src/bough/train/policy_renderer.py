"""The renderer of a run's policy."""

from pathlib import Path

from bough.policy.chat import ChatRenderer
from bough.roles.recipes import RendererRecipe
from bough.train.run import Run


def policy_renderer(run: Run, assets: Path) -> ChatRenderer:
    """The renderer of a run's policy with its files in `assets`, without the model where that is possible."""
    recipe = run.world.policy
    return recipe.renderer(assets) if isinstance(recipe, RendererRecipe) else recipe.build((), assets).renderer
