"""The prompt-key bias: added to the attention mask that each block receives."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import numpy as np

from relaymodel.networks.huggingface.libraries import heavy

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

NAME = "attention_mask"


def bias_hook(
    bias: ArrayLike, n: int, start: int = 0, stop: int | None = None
) -> Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]:
    """Return a forward pre-hook for blocks that adds the bias, (n, k), to their mask for the first k keys.

    The model makes its own masks, so that windows stay; no mask is a causal one, a boolean one says what is seen.  In
    a pass over a piece of a text, the queries are those from `start` to `stop`, and the keys all up to there.

    Raises `ValueError` for a bias of another shape or not finite and, when the hook runs, for a block without a mask
    of shape (batch, heads, queries, keys).
    """
    torch = heavy("torch")
    added = np.asarray(bias, dtype=np.float64)
    if added.ndim != 2 or added.shape[0] != n or added.shape[1] > n:
        raise ValueError(f"bias must have shape (n, k) with n = {n} and k <= n, got {added.shape}")
    if not np.all(np.isfinite(added)):
        raise ValueError("bias must be finite, got NaN or infinite entries")
    m = n if stop is None else stop  # keys
    q = m - start
    values = torch.tensor(np.ascontiguousarray(added[start:m, :m]))
    made: dict[int, tuple[Any, Any]] = {}  # blocks share masks; the old one is kept, so that its id stays its own

    def biased(mask: Any, states: Any) -> Any:
        if id(mask) in made:
            return made[id(mask)][1]
        old = mask
        if old is None:
            old = torch.ones((1, 1, q, m), dtype=torch.bool, device=states.device).tril(start)
        if not isinstance(old, torch.Tensor) or old.ndim != 4 or old.shape[2] != q or old.shape[3] < m:
            shape = tuple(old.shape) if isinstance(old, torch.Tensor) else type(old).__name__
            raise ValueError(f"bias must be added to a mask of shape (batch, heads, {q}, {m}), and a block has {shape}")
        if old.dtype == torch.bool:
            hidden = torch.finfo(states.dtype).min
            new = torch.zeros(old.shape, dtype=states.dtype, device=old.device).masked_fill_(~old, hidden)
        else:
            new = old.clone()
        new[..., : values.shape[1]] += values.to(new)
        made[id(mask)] = (mask, new)
        return new

    def hook(block: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        names = list(inspect.signature(block.forward).parameters)
        if NAME not in names:
            raise ValueError(
                f"bias must be left out: {type(block).__name__} takes no {NAME}, its keys cannot be biased"
            )
        states = args[0] if args else kwargs["hidden_states"]
        place = names.index(NAME)
        if place < len(args):
            return (*args[:place], biased(args[place], states), *args[place + 1 :]), kwargs
        return args, kwargs | {NAME: biased(kwargs.get(NAME), states)}

    return hook
