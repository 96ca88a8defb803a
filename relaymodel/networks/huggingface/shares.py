"""Rules of the prompt's share, put into the softmax while a model runs: fused attention or one that makes a matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from relaymodel.networks.huggingface.attention import fused_rows
from relaymodel.networks.huggingface.libraries import heavy

if TYPE_CHECKING:
    from collections.abc import Callable

    from relaymodel.simulation.share import PromptShares

ROWS_AT_ONCE = 256  # queries whose weights are held at once


def share_rule(shares: PromptShares, n: int) -> Any:
    """Return a context in which the attention of n tokens obeys a rule; its `entering` is a hook for every block.

    Its `obeyed` counts the blocks whose softmax was found.
    """
    torch = heavy("torch")
    functional = torch.nn.functional
    softmaxes = {functional.softmax, torch.softmax, torch.Tensor.softmax}
    P = shares.prompt

    def shared(weights: Any, start: int) -> Any:
        """Return weights (..., r, keys) of queries from `start` on, of which those behind the prompt obey."""
        first = max(0, P - start)
        rows = weights[..., first:, :]
        sums = (part.sum(-1, dtype=torch.float64).cpu().numpy() for part in (rows[..., :P], rows[..., P:]))
        inside, outside = (torch.as_tensor(x, device=rows.device).to(rows)[..., None] for x in shares.factors(*sums))
        return torch.cat(
            (weights[..., :first, :], torch.cat((rows[..., :P] * inside, rows[..., P:] * outside), -1)), -2
        )

    def fused(
        query: Any,
        key: Any,
        value: Any,
        attn_mask: Any = None,
        _: float = 0.0,
        is_causal: bool = False,
        *,
        scale: float | None = None,
        **__: Any,
    ) -> Any:
        if key.shape[1] != query.shape[1]:
            key, value = (x.repeat_interleave(query.shape[1] // x.shape[1], dim=1) for x in (key, value))
        keys, found = torch.arange(key.shape[2], device=key.device), []
        for start in range(0, n, ROWS_AT_ONCE):
            rows = keys[start : start + ROWS_AT_ONCE]
            weights = fused_rows(query[:, :, rows], key, rows, attn_mask, is_causal, scale)
            found.append(shared(weights, start) @ value)
        return torch.cat(found, dim=2)

    class Rule(torch.overrides.TorchFunctionMode):  # type: ignore[misc, name-defined]
        waiting, obeyed = False, 0

        def entering(self, *_: Any) -> None:
            """Wait for the next softmax, that of the block that begins."""
            self.waiting = True

        def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            whole = func is functional.scaled_dot_product_attention
            if not self.waiting or not (whole or func in softmaxes):
                return func(*args, **kwargs)
            result = fused(*args, **kwargs) if whole else func(*args, **kwargs)
            if not whole:
                if result.ndim != 4 or result.shape[2] != n or result.shape[3] < n:
                    return result  # of something else, such as experts
                result = shared(result, 0)
            self.waiting = False  # one softmax a block
            self.obeyed += 1
            return result

    return Rule()
