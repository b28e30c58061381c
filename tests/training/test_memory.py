"""The allocator's settings change speed and nothing else."""

import platform

import torch

from regard.training.memory import keep_freed_memory


def test_glibc_takes_the_settings_and_still_allocates() -> None:
    assert keep_freed_memory() == (platform.libc_ver()[0] == "glibc")
    blocks = [torch.full((2**size,), 1.0) for size in (4, 15, 20, 24)]
    assert [int(block.sum()) for block in blocks] == [2**4, 2**15, 2**20, 2**24]
