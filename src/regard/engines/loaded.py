"""A converted model in memory, as it is driven: once for every layout that is in use."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from regard.engines.instructions import choose_instructions
from regard.engines.layout import Layout


class Loaded:
    """``folder`` converts the model where that was not done before, so it is asked when the model is needed,
    not when it might be."""

    def __init__(self, folder: Callable[[], Path], load: Callable[[Path, Layout], Any]) -> None:
        self._convert, self._load = folder, load
        self._loaded: dict[Layout, Any] = {}

    @cached_property
    def folder(self) -> Path:
        return self._convert()

    def at(self, layout: Layout) -> Any:
        if layout not in self._loaded:
            choose_instructions()
            with _threads_kept():
                self._loaded[layout] = self._load(self.folder, layout)
        return self._loaded[layout]

    def keep(self, layouts: Iterable[Layout]) -> None:
        """Forget all others."""
        self._loaded = {layout: self._loaded[layout] for layout in set(layouts) if layout in self._loaded}


@contextmanager
def _threads_kept() -> Iterator[None]:
    """Loading with one thread for each worker leaves OpenMP, and so torch, one thread in whoever loads: our
    own steps would be slow from then on, and the next model would be driven as if there were one core."""
    threads = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(threads)
