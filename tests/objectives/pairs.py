"""Three pairs of different lengths, and small models to learn them."""

from functools import cache
from typing import NamedTuple

import pytest
import torch

from regard.core.sequences import Tokens
from regard.models.sequence_to_sequence import SequenceToSequence
from regard.objectives.next_token import NextTokenSpec
from regard.objectives.objective import Outcome, Progress
from tests.models.small import MODELS

SOURCES, TARGETS, PADDING, BEGIN, END = 13, 11, 0, 1, 2
SOURCE_ROWS = [[3, 4, 5, 6], [7], [12, 11, 10, 9, 8, 7, 6]]
TARGET_ROWS = [[BEGIN, 3, 4, END], [BEGIN, 10, 9, 8, 7, END], [BEGIN, END]]
START = Progress(step=0, epoch=0, seed=0)
every_model = pytest.mark.parametrize("name", MODELS)


class Pairs(NamedTuple):
    source: Tokens
    target: Tokens


PAIRS = Pairs(Tokens.pad(SOURCE_ROWS, PADDING), Tokens.pad(TARGET_ROWS, PADDING))


@cache
def build(name: str) -> SequenceToSequence:
    torch.manual_seed(0)
    model = MODELS[name].build({"source": SOURCES, "target": TARGETS}).double().eval()
    for parameter in model.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    return model


def cost(model: SequenceToSequence, pairs: Pairs = PAIRS, **fields: object) -> Outcome:
    return NextTokenSpec(**fields).build()(model, pairs, START)
