"""Encoders and decoders of different families learn together: any with any."""

from collections.abc import Callable

import pytest

from regard.mixers.attentive import LookThenStepSpec, StepThenLookSpec
from regard.models.sequence_to_sequence import SequenceToSequenceSpec
from regard.parts.cells import GatedSpec, LongShortTermSpec
from tests.models.learning import Row, share_right, train
from tests.models.small import both_ways, convolutions, decoder, transformer_decoder, transformer_encoder

WIDTH = 32


def reverse(row: Row) -> Row:
    return row[::-1]


def copy(row: Row) -> Row:
    return row


CASES: dict[str, tuple[SequenceToSequenceSpec, Callable[[Row], Row]]] = {
    "Transformer encoder, GRU that looks then steps": (
        SequenceToSequenceSpec(
            encoder=transformer_encoder(WIDTH, heads=4, hidden=64, layers=1),
            decoder=decoder(WIDTH, LookThenStepSpec(cell=GatedSpec(width=WIDTH), readout=WIDTH)),
        ),
        reverse,
    ),
    "Transformer encoder, LSTM that steps then looks": (
        SequenceToSequenceSpec(
            encoder=transformer_encoder(WIDTH, heads=4, hidden=64, layers=1),
            decoder=decoder(WIDTH, StepThenLookSpec(cell=LongShortTermSpec(width=WIDTH))),
        ),
        reverse,
    ),
    "LSTM encoder both ways, Transformer decoder": (
        SequenceToSequenceSpec(
            encoder=both_ways(WIDTH, WIDTH // 2, layers=1),
            decoder=transformer_decoder(WIDTH, heads=4, hidden=64, layers=2),
        ),
        reverse,
    ),
    "convolutions": (convolutions(WIDTH, kernel=3, layers=2), copy),
}


@pytest.mark.parametrize(("spec", "task"), CASES.values(), ids=CASES)
def test_families_learn_together(spec: SequenceToSequenceSpec, task: Callable[[Row], Row]) -> None:
    assert share_right(train(spec, task, steps=220), task) >= 0.9
