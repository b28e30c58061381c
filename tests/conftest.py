"""Shapes in signatures are checked whenever tests run; each worker keeps to one thread."""

import torch
from hypothesis import settings
from jaxtyping import install_import_hook

install_import_hook("regard", "beartype.beartype").__enter__()

torch.set_num_threads(1)
settings.register_profile("regard", deadline=None, max_examples=15, derandomize=True)
settings.load_profile("regard")
