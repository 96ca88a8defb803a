"""The coarsest numbers that the states of a model pass through."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from relaymodel.networks.huggingface.libraries import heavy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def coarsest(parameters: Iterable[Any], batch: int, run: Callable[[], object]) -> Any:
    """Return the coarsest number format of parameters, and of what `run` makes of wider numbers.

    Many families take norms or softmax in float32, whatever the format of their weights.  Only arrays of three axes or
    more, the first that of the `batch`, count: angles of positions are the same in all runs.
    """
    torch = heavy("torch")
    formats = {p.dtype for p in parameters if p.is_floating_point()}

    def follows_text(x: Any) -> bool:
        return isinstance(x, torch.Tensor) and x.is_floating_point() and x.ndim >= 3 and x.shape[0] == batch

    def spacing(kind: Any) -> float:
        return float(torch.finfo(kind).eps)

    class Watch(torch.overrides.TorchFunctionMode):  # type: ignore[misc, name-defined]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            if follows_text(result):
                taken = [x.dtype for x in (*args, *(kwargs or {}).values()) if follows_text(x)]
                if taken and spacing(result.dtype) > min(map(spacing, taken)):
                    formats.add(result.dtype)
            return result

    with Watch():
        run()
    return max(formats, key=spacing)
