"""Where torch computes, decided once: FTS_DEVICE, else a GPU where there is one, else the CPU."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch


def device() -> torch.device:
    """FTS_DEVICE if set ("cpu", "cuda", "cuda:1"), else the first GPU, else the CPU."""
    name = os.environ.get("FTS_DEVICE") or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"FTS_DEVICE={name!r} cannot be used here ({error}): set it to cpu") from None


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread inside the block, the caller's own setting after it: parallelism is over runs."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
