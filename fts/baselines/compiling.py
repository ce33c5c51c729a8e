"""A function of tensors -> the same function compiled, where that pays and a compiler exists."""

import shutil
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import torch

P = ParamSpec("P")
R = TypeVar("R")

# Compiling takes about forty seconds, and saves some ten milliseconds at every call.
_WORTH = 4000


def compiled(function: Callable[P, R], calls: int) -> Callable[P, R]:
    """`function`, fused by torch.compile if it will be called often enough; else itself.

    A compiler that is there may still lack headers; this shows at the first call, which then runs without it.
    """
    if calls < _WORTH or not (shutil.which("g++") or shutil.which("clang++")):
        return function
    fast = torch.compile(function, dynamic=False)
    chosen: list[Callable[P, R]] = []

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if chosen:
            return chosen[0](*args, **kwargs)
        try:
            result = fast(*args, **kwargs)
        except RuntimeError:
            chosen.append(function)
            return function(*args, **kwargs)
        chosen.append(fast)
        return result

    return call
