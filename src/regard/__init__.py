"""Regard: attention-era sequence models as short recipes over one small set of parts.

>>> import regard
>>> regard.train("transformer_tiny", data="pairs.tsv", out="runs/mine", minutes=10)
>>> regard.load("runs/mine")("some input")
"""

from typing import TYPE_CHECKING, Any

from regard.core.processor import leave_unusable_tiles_alone
from regard.core.waiting import choose_spinning

if TYPE_CHECKING:
    from regard.apps.session import Run, load
    from regard.apps.training import Trained, train
    from regard.core.errors import RegardError
    from regard.recipes.catalogue import recipe
    from regard.recipes.system import SystemSpec

# Read by torch's libraries when they are loaded or first used.
choose_spinning()
leave_unusable_tiles_alone()

__all__ = ["train", "load", "recipe", "Run", "Trained", "SystemSpec", "RegardError"]

_WHERE = {
    "train": "regard.apps.training",
    "Trained": "regard.apps.training",
    "load": "regard.apps.session",
    "Run": "regard.apps.session",
    "recipe": "regard.recipes.catalogue",
    "SystemSpec": "regard.recipes.system",
    "RegardError": "regard.core.errors",
}


def __getattr__(name: str) -> Any:
    # Loading torch takes seconds; `import regard` should not.
    if name not in _WHERE:
        raise AttributeError(f"module 'regard' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_WHERE[name]), name)
