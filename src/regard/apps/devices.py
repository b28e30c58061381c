"""Where tensors live."""

import torch

from regard.core.errors import UsageError


def choose_device(asked: str | None) -> torch.device:
    """The one asked for, or the fastest there is."""
    if asked is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(asked)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise UsageError(f"--device {asked}: cannot be used here: {reason}") from None
    return device
