"""A model's weights as named tensors: tied ones once, checked against the model before they are used."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from regard.core.errors import RunError, UsageError
from regard.training import durable


def named_weights(model: nn.Module) -> dict[str, Tensor]:
    """Parameters and persistent buffers, sharing memory with the model; of tied ones the first name."""
    weights: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            weights[name] = tensor.detach()
    return weights


def to_bytes(tensors: Mapping[str, Tensor]) -> bytes:
    """A sealed safetensors file."""
    stored = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    # One metadata entry only: the library writes several in no fixed order, and equal weights
    # should make equal files.
    return durable.seal(safetensors.torch.save(stored, {"sha256": durable.UNSEALED}))


def from_bytes(content: bytes, path: Path) -> dict[str, Tensor]:
    try:
        return safetensors.torch.load(content)
    except SafetensorError as error:
        raise RunError(f"{path}: not a safetensors file: {error}") from None


def read_weights(path: Path) -> dict[str, Tensor]:
    """A sealed safetensors file, refused by name if one bit of it has changed."""
    return from_bytes(durable.read_sealed(path), path)


def load_all(model: nn.Module, stored: Mapping[str, Tensor], where: Path) -> None:
    """Copy ``stored`` into the model; names and shapes must be exactly the model's.

    An empty tensor has no shape yet: a module whose sizes only the data know (counts of n-grams) takes the
    stored ones in its ``load_state_dict`` hook.
    """
    own = named_weights(model)
    problems = []
    if missing := [name for name in own if name not in stored]:
        problems.append(f"missing: {_shorten(missing)}")
    if unexpected := [name for name in stored if name not in own]:
        problems.append(f"not in the model: {_shorten(unexpected)}")
    if differing := [
        f"{name} is {_shape(stored[name])} in the file, {_shape(own[name])} in the model"
        for name in own
        if name in stored and not _alike(stored[name], own[name])
    ]:
        problems.append(f"of another shape: {_shorten(differing)}")
    if problems:
        raise RunError(f"{where}: its weights are not those of this model; " + "; ".join(problems))
    _copy(model, stored, list(own))


_A_ROW_A_TOKEN = ("embedding.tokens.weight", "words.weight", "words.bias")


class Transfer(NamedTuple):
    """What went over from another run, by name."""

    taken: list[str]
    untouched: list[str]
    """Weights of the model that the other run does not have, or has in another shape."""
    unused: list[str]
    """Weights of the other run that found no place."""
    grown: tuple[str, ...] = ()
    """Of those taken, tables of words that have rows of their own beyond the other run's."""


def load_matching(
    model: nn.Module, stored: Mapping[str, Tensor], where: Path, reader: tuple[str, str] = ("", "")
) -> Transfer:
    """Start from another model's weights: take what has the same name and shape, tell the rest.

    ``reader``: the first word of the names of what reads, there and here; that goes over as a whole, or not
    at all.
    """
    own = named_weights(model)
    stored = {_name_here(name, own, *reader): tensor for name, tensor in stored.items()}
    grown = {
        name: torch.cat((stored[name], tensor[len(stored[name]) :].cpu()))
        for name, tensor in own.items()
        if name in stored and _grows(name, stored[name], tensor)
    }
    stored = {**stored, **grown}
    taken = [name for name in own if name in stored and _alike(stored[name], own[name])]
    _refuse_misfit(own, stored, where, reader[1])
    if not taken:
        raise UsageError(
            f"{where}: none of its {len(stored)} weights has a name and shape of this model; "
            f"it holds {_shorten(list(stored), 4)}; the model has {_shorten(list(own), 4)}"
        )
    _copy(model, stored, taken)
    return Transfer(
        taken,
        [name for name in own if name not in taken],
        [name for name in stored if name not in taken],
        tuple(grown),
    )


def _grows(name: str, stored: Tensor, own: Tensor) -> bool:
    """A vocabulary that was taken over may have got tokens behind its last; those it had keep their rows."""
    of_tokens = name.endswith(_A_ROW_A_TOKEN)
    return of_tokens and len(stored) < len(own) and stored.shape[1:] == own.shape[1:]


def _refuse_misfit(own: Mapping[str, Tensor], stored: Mapping[str, Tensor], where: Path, reader: str) -> None:
    """A reader of which some layers are another's and some are new knows nothing."""
    parts = (f"{reader}.embedding.", f"{reader}.stack.")
    for name, tensor in own.items():
        if reader and name.startswith(parts) and name in stored and not _alike(stored[name], tensor):
            raise UsageError(
                f"{where}: {name} is {_shape(stored[name])} there, but {_shape(tensor)} in this model: what "
                "reads can be taken over only in the same size"
            )


def _name_here(name: str, own: Mapping[str, Tensor], there: str, here: str) -> str:
    """What reads goes where this model reads, unless the name means something here as it is."""
    if name in own or not name.startswith(f"{there}."):
        return name
    words = f"words.{name.removeprefix(f'{there}.head.')}"
    if name.startswith(f"{there}.head.") and words in own:
        return words
    renamed = f"{here}.{name.removeprefix(f'{there}.')}"
    return renamed if renamed in own else name


def _copy(model: nn.Module, stored: Mapping[str, Tensor], names: list[str]) -> None:
    # Not strict: of tied weights only the first name is stored.
    model.load_state_dict({name: stored[name] for name in names}, strict=False)


def _alike(stored: Tensor, own: Tensor) -> bool:
    same_shape = stored.shape == own.shape or own.numel() == 0
    return same_shape and stored.dtype.is_floating_point == own.dtype.is_floating_point


def _shape(tensor: Tensor) -> str:
    return f"{list(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')}"


def _shorten(names: list[str], most: int = 8) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
