"""Models of roles that are copies of the policy need a policy whose weights are here."""

from typing import cast

import pytest

from bough.config import ConfigError
from bough.rollout import RoleModel
from bough.train import EarlierVersion, StartingWeights
from bough.train.models import JudgeWeights, ModelSource


@pytest.mark.parametrize(
    "source", [StartingWeights(), EarlierVersion(), JudgeWeights()], ids=lambda it: type(it).__name__
)
def test_a_server_has_no_weights_to_copy(source: ModelSource) -> None:
    with pytest.raises(ConfigError, match=f"models={type(source).__name__}: got a server as policy.*need the model"):
        source.open_model(None, cast("RoleModel", None))
