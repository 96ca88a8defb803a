"""Trainings side by side, a process each: what they report comes back through a queue."""

from __future__ import annotations

import multiprocessing
import os
import threading
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from relaymodel.networks.training.run import Record, Run

Key = tuple[str, int]

STEP_MESSAGE, MEASURED_MESSAGE, ENDED = "step", "measured", "ended"


def train_all(
    runs: Mapping[Key, Run],
    jobs: int,
    tell: Callable[[Key, Record], object],
    report: Callable[[Key, int], object],
) -> None:
    """Train every run to its end, `jobs` of them at a time; with one job or run, here, in their order.

    If one raises, or a callback does, the others stop after their present step, and it is raised.
    """
    if min(jobs, len(runs)) == 1:
        for key, run in runs.items():
            run.train(partial(tell, key), partial(report, key))
        return
    context = multiprocessing.get_context("spawn")  # a fork would inherit the threads of torch as locks for ever held
    queue, stop = context.SimpleQueue(), context.Event()
    with ProcessPoolExecutor(min(jobs, len(runs)), context, _join, (queue, stop)) as pool:
        try:
            futures = {key: pool.submit(_work, key, run) for key, run in runs.items()}
            for key, future in futures.items():
                # also called if the process is killed
                future.add_done_callback(lambda _, key=key: queue.put((key, ENDED, None)))  # type: ignore[misc]
            working = len(runs)
            while working:
                key, kind, content = queue.get()
                if kind == STEP_MESSAGE:
                    report(key, content)
                elif kind == MEASURED_MESSAGE:
                    tell(key, content)
                else:
                    futures[key].result()
                    working -= 1
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)


_link: list[Any] = []
"""In a worker: the queue to the parent, and the event that ends the work."""


def _join(queue: Any, stop: Any) -> None:
    _link[:] = queue, stop
    threading.Thread(target=_follow, daemon=True).start()


def _follow() -> None:
    """End with the parent, however it ends: files are written whole, and a second run must find nobody at work."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(key: Key, run: Run) -> None:
    queue, stop = _link

    def advanced(step: int) -> None:
        if stop.is_set():
            raise InterruptedError(f"training {key} was stopped at step {step}")
        queue.put((key, STEP_MESSAGE, step))

    run.train(lambda record: queue.put((key, MEASURED_MESSAGE, record)), advanced)
