"""GiGPO with similar texts for states on TextWorld: turns that read nearly the same are compared.

Paper: GiGPO (arXiv 2505.10978), whose released code can group observations that match by 0.95 instead of equal states,
as the paper does for search, where no two observations are equal. Assumes that observations which differ in little ask
for the same; it reads no state keys. Discount 0.95 and weight 1 are the paper's; the rest is that of grpo_textworld.
The released matcher overlooks frequent letters in texts of 200 and more, this one does not.
"""

from dataclasses import replace

from bough.credit import Gigpo
from bough.recipes import grpo_textworld
from bough.train import Run


def run() -> Run:
    """Train in under half an hour on two CPU cores. Needs the extra `textworld`."""
    return replace(
        grpo_textworld.run(),
        name="gigpo_similarity_textworld",
        credit=Gigpo(discount=0.95, similarity=0.95),
    )
