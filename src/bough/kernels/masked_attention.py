"""PyTorch's attention with a mask, where heads share keys."""

from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention


def masked_attention(
    query: Float[Tensor, "N H n D"],
    key: Float[Tensor, "N K m D"],
    value: Float[Tensor, "N K m D"],
    mask: Bool[Tensor, "*s n m"],
    scale: float,
) -> Float[Tensor, "N H n D"]:
    """Softmax attention to the keys that the mask has; query head h reads key head h // (H // K).

    On a GPU the fused kernels take a mask or fewer key heads, not both; with both PyTorch computes all scores of all
    heads in memory. So the queries of a key head are taken together, or its keys are repeated.
    """
    rows, heads, queries, width = query.shape
    shared = heads // key.shape[1]
    if shared == 1 or query.device.type == "cpu":
        return scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scale, enable_gqa=shared > 1)
    if queries == 1:
        grouped = query.reshape(rows, -1, shared, width)
        mask = mask.expand(*mask.shape[:-2], shared, -1)
        return scaled_dot_product_attention(grouped, key, value, attn_mask=mask, scale=scale).view(query.shape)
    key, value = (each.repeat_interleave(shared, dim=1) for each in (key, value))
    return scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scale)
