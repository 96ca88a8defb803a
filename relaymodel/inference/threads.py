"""Small matrices without the linear algebra library's threads, which spin where other work keeps the cores busy."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


def one_thread(function: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
    """Return the function, run without the library's threads, which are as many as before afterwards."""

    @wraps(function)
    def alone(*args: Arguments.args, **options: Arguments.kwargs) -> Answer:
        from threadpoolctl import threadpool_limits

        with threadpool_limits(limits=1, user_api="blas"):
            return function(*args, **options)

    return alone
