"""State along time: any tree of batch-first tensors, passed in and handed back.

No module keeps a cache of its own. Because the batch axis is the first of every tensor, a beam reorders
the state of any model with one map over the tree.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from jaxtyping import Int
from torch import Tensor

State: TypeAlias = Any
"""A tensor, None, or a tuple, named tuple, list or dict of states."""


def map_tensors(function: Callable[[Tensor], Tensor], state: State) -> State:
    """Apply ``function`` to every tensor of the tree, keeping its form."""
    if state is None:
        return None
    if isinstance(state, Tensor):
        return function(state)
    if isinstance(state, dict):
        return {key: map_tensors(function, value) for key, value in state.items()}
    mapped = [map_tensors(function, value) for value in state]
    if hasattr(state, "_fields"):
        return type(state)(*mapped)
    return type(state)(mapped)


def select_rows(state: State, rows: Int[Tensor, "rows"]) -> State:
    """The state in which row i is what row ``rows[i]`` was: reorders, repeats or drops hypotheses."""
    return map_tensors(lambda tensor: tensor.index_select(0, rows), state)


def select_hypotheses(
    state: State, rows: Int[Tensor, "rows"], sentences: Int[Tensor, "sentences"] | None = None
) -> State:
    """As ``select_rows``, where several rows are hypotheses of one sentence, side by side.

    A named tuple may say in ``of_memory`` which of its fields are made of the source alone. These keep one
    row for each sentence however many hypotheses it has, and follow ``sentences`` (None: all stay).
    """
    if state is None:
        return None
    if isinstance(state, Tensor):
        return state.index_select(0, rows)
    if isinstance(state, dict):
        return {key: select_hypotheses(value, rows, sentences) for key, value in state.items()}
    if hasattr(state, "_fields"):
        shared = getattr(state, "of_memory", ())
        fields = zip(state._fields, state, strict=True)
        return type(state)(
            *(
                _of_sentences(value, sentences)
                if name in shared
                else select_hypotheses(value, rows, sentences)
                for name, value in fields
            )
        )
    return type(state)([select_hypotheses(value, rows, sentences) for value in state])


def _of_sentences(state: State, sentences: Tensor | None) -> State:
    return state if sentences is None else select_rows(state, sentences)


def repeat_rows(state: State, times: int) -> State:
    """Each row ``times`` times, copies side by side."""
    return map_tensors(lambda tensor: tensor.repeat_interleave(times, dim=0), state)


def detach(state: State) -> State:
    """Cut the gradient: truncated backpropagation through time carries values, not graphs."""
    return map_tensors(Tensor.detach, state)


def concatenate_rows(states: list[State]) -> State:
    """Several states of the same form, one under the other."""
    first = states[0]
    if first is None:
        return None
    if isinstance(first, Tensor):
        return torch.cat(states, dim=0)
    if isinstance(first, dict):
        return {key: concatenate_rows([state[key] for state in states]) for key in first}
    joined = [concatenate_rows(list(parts)) for parts in zip(*states, strict=True)]
    return type(first)(*joined) if hasattr(first, "_fields") else type(first)(joined)


def rows_between(state: State, begin: int, end: int) -> State:
    """Consecutive rows of a state, as views."""
    return map_tensors(lambda tensor: tensor[begin:end], state)


def tensors_of(state: State) -> list[Tensor]:
    """All tensors of the tree, in its order."""
    found: list[Tensor] = []

    def note(tensor: Tensor) -> Tensor:
        found.append(tensor)
        return tensor

    map_tensors(note, state)
    return found


def with_tensors(form: State, tensors: Sequence[Tensor]) -> State:
    """A tree like ``form`` that holds these tensors: how a state comes back from a file."""
    left = list(tensors)
    if len(left) != len(tensors_of(form)):
        raise ValueError(f"{len(left)} tensors for a state of {len(tensors_of(form))}")
    return map_tensors(lambda _: left.pop(0), form)
