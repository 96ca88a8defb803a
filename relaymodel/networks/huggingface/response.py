"""Derivatives of the states along a change of the embedding, in forward mode."""

from __future__ import annotations

import warnings
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from relaymodel.networks.huggingface.libraries import Enough, first_line, heavy

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray


def derivatives(
    body: Any,
    blocks: Any,
    ids: Any,
    masks: NDArray[np.bool_],
    take: Callable[[int, int, Any], object],
    bias: Callable[..., Any] | None,
) -> None:
    """Call take(layer, row, derivative) as `Network.observe` says of `respond`; `bias` is a hook for the blocks."""
    torch = heavy("torch")
    dual = torch.autograd.forward_ad
    x, other = _embedding(body, blocks, ids)
    for row, mask in enumerate(masks):
        tangent = ((other - x) * torch.as_tensor(mask, device=x.device)[:, None])[None]

        def show(layer: int, states: Any, row: int = row) -> None:
            while isinstance(states, (tuple, list)):
                states = states[0]
            take(layer, row, dual.unpack_dual(states).tangent[0].double().cpu().numpy())

        def enter(_: Any, args: Any, kwargs: Any, tangent: Any = tangent) -> Any:
            moved = dual.make_dual(args[0] if args else kwargs["hidden_states"], tangent)
            show(0, moved)
            return ((moved, *args[1:]), kwargs) if args else (args, kwargs | {"hidden_states": moved})

        with dual.dual_level(), warnings.catch_warnings(), ExitStack() as hooks:
            # torch compiles its rules for some derivatives at their first use, in a way that it calls deprecated itself
            warnings.filterwarnings("ignore", r".*torch\.jit", DeprecationWarning)
            # fused kernels have no forward derivative
            hooks.enter_context(torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH))
            hooks.callback(blocks[0].register_forward_pre_hook(enter, with_kwargs=True).remove)
            for layer, block in enumerate(blocks, start=1):

                def after(_: Any, __: Any, states: Any, layer: int = layer) -> None:
                    show(layer, states)

                hooks.callback(block.register_forward_hook(after).remove)
                if bias is not None:
                    hooks.callback(block.register_forward_pre_hook(bias, with_kwargs=True).remove)
            try:
                body(input_ids=ids[:1], use_cache=False)
            except NotImplementedError as error:
                raise ValueError(
                    f"response must be left out: {type(body).__name__} has a part that torch has no forward derivative "
                    f"for ({first_line(error)})"
                ) from None


def _embedding(body: Any, blocks: Any, ids: Any) -> Any:
    """Return what the first block gets, (B, n, width); the run ends there."""
    seen: list[Any] = []

    def enter(_: Any, args: Any, kwargs: Any) -> None:
        seen.append(args[0] if args else kwargs["hidden_states"])
        raise Enough

    handle = blocks[0].register_forward_pre_hook(enter, with_kwargs=True)
    try:
        body(input_ids=ids, use_cache=False)
    except Enough:
        pass
    finally:
        handle.remove()
    return seen[0]
