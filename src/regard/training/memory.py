"""Let the allocator keep freed memory: a training step frees and asks for the same large blocks again."""

import ctypes

# Numbers of <malloc.h> (glibc).
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -2, -3, -4, -8


def keep_freed_memory() -> bool:
    """Stop glibc from returning large blocks to the kernel after every step; False on other platforms.

    By default every block above a threshold is mapped, faulted in page by page and unmapped again. The
    threshold cannot be set above 32 MB everywhere, and the scores over a vocabulary are larger than that: so
    mapping is switched off altogether. Threads share one arena: those of their own are made of small mapped
    heaps, which come and go with every large block.
    """
    try:
        library = ctypes.CDLL(None)
        mallopt = library.mallopt
        _ = library.gnu_get_libc_version
    except (AttributeError, OSError, TypeError):
        return False
    wanted = {
        _TRIM_THRESHOLD: 2**31 - 1,
        _TOP_PAD: 64 * 2**20,
        _MMAP_THRESHOLD: 32 * 2**20,
        _MMAP_MAX: 0,
        _ARENA_MAX: 1,
    }
    return all(mallopt(option, value) == 1 for option, value in wanted.items())
