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
def threads(count: int) -> Iterator[None]:
    """Compute with `count` threads inside the block and leave the caller's own setting as it was."""
    if count < 1:
        raise ValueError(f"{count} threads cannot compute anything: give 1 or more")
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
