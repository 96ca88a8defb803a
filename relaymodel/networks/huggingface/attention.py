"""Rows of the softmax, read while a model runs: from fused attention as from one that makes its own matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from relaymodel.networks.huggingface.libraries import heavy

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray


def fused_rows(query: Any, key: Any, rows: Any, mask: Any, is_causal: bool, scale: float | None) -> Any:
    """Return the softmax that fused attention takes of the queries `rows`, (B, heads, rows, keys), from its arguments.

    `query` holds those queries alone, the mask all of them; every query head has keys of its own.
    """
    torch = heavy("torch")
    logits = (query @ key.mT) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        keys = torch.arange(key.shape[2], device=key.device)
        logits = logits.masked_fill(keys > rows[:, None], -torch.inf)
    if mask is not None:
        mask = mask[..., rows, :] if mask.shape[-2] > 1 else mask
        logits = logits.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else logits + mask
    return logits.softmax(dim=-1)


def row_watch(positions: NDArray[np.int64], n: int, take: Callable[..., object]) -> Any:
    """Return a context in which the attention of n tokens is watched; its `entering` makes hooks for the blocks.

    It calls take(layer, positions, weights), (B, heads, positions, n), once for each block with a softmax over keys.
    """
    torch = heavy("torch")
    functional = torch.nn.functional
    softmaxes = {functional.softmax, torch.softmax, torch.Tensor.softmax}
    rows = torch.as_tensor(positions)

    def fused(
        query: Any,
        key: Any,
        _: Any,
        attn_mask: Any = None,
        __: float = 0.0,
        is_causal: bool = False,
        *,
        scale: float | None = None,
        **___: Any,
    ) -> Any:
        """Return rows of the softmax that fused attention takes, from its arguments."""
        wide = torch.promote_types(query.dtype, torch.float32)
        key = key[:, :, :n].to(wide)
        if key.shape[1] != query.shape[1]:
            key = key.repeat_interleave(query.shape[1] // key.shape[1], dim=1)
        mask = None if attn_mask is None else attn_mask[..., :n]
        return fused_rows(query[:, :, rows].to(wide), key, rows.to(key.device), mask, is_causal, scale)

    class Watch(torch.overrides.TorchFunctionMode):  # type: ignore[misc, name-defined]
        layer: int | None = None

        def entering(self, layer: int) -> Callable[..., None]:
            """Return a hook for what comes before a block."""
            return lambda *_: setattr(self, "layer", layer)

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            result = func(*args, **kwargs)
            if self.layer is None:
                return result
            weights = None
            if func is functional.scaled_dot_product_attention:
                weights = fused(*args, **kwargs)
            elif func in softmaxes and result.ndim == 4 and result.shape[2] == n <= result.shape[3]:
                weights = result[:, :, rows, :n]  # further columns are sinks of the model's own
            if weights is not None:
                take(self.layer, positions, weights.to(torch.promote_types(weights.dtype, torch.float32)).cpu().numpy())
                self.layer = None  # one softmax a block
            return result

    return Watch()
