"""Models that cannot be are refused with both values; parameters that are shared are one tensor."""

import pytest
import torch

from regard.core.errors import UsageError
from regard.core.sequences import Tokens
from regard.mixers.attention import MemoryAttentionSpec, SelfAttentionSpec
from regard.mixers.attentive import LookThenStepSpec
from regard.mixers.convolution import ConvolutionSpec
from regard.mixers.mixer import MixerSpec
from regard.mixers.pointwise import PointwiseSpec
from regard.mixers.recurrent import RecurrentSpec
from regard.models.sequence_to_sequence import SequenceToSequence, SequenceToSequenceSpec
from regard.parts.cells import GatedSpec
from regard.parts.pooling import LastSpec
from regard.parts.positions import LearnedSpec
from regard.parts.scores import LocationSpec
from regard.stacks.join import HalvedSpec, JoinSpec, PlainSpec, PostNormSpec, PreNormSpec
from regard.stacks.stack import BlockSpec, Stack, StackSpec
from tests.models.small import both_ways, decoder, encoder, transformer_decoder, transformer_encoder

SIZES = {"source": 13, "target": 13}


def pair(**fields: object) -> SequenceToSequenceSpec:
    given = {"encoder": transformer_encoder(), "decoder": transformer_decoder()} | fields
    return SequenceToSequenceSpec(**given)


def stack(*mixers: MixerSpec, join: JoinSpec | None = None, **fields: object) -> StackSpec:
    return StackSpec(blocks=(BlockSpec(mixers=mixers, join=join or PlainSpec(), **fields),))


def count(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


# ---------------------------------------------------------------- refused


@pytest.mark.parametrize(
    "mixer",
    [
        RecurrentSpec(cell=GatedSpec(width=6), direction="both"),
        RecurrentSpec(cell=GatedSpec(width=12), direction="backward"),
        ConvolutionSpec(kernel=3),
    ],
    ids=["both ways", "backward", "convolution"],
)
def test_a_decoder_may_not_look_ahead(mixer: MixerSpec) -> None:
    with pytest.raises(UsageError, match="may not look ahead"):
        pair(decoder=decoder(12, SelfAttentionSpec(heads=2), mixer)).build(SIZES)
    blocks = (BlockSpec(mixers=(mixer,)), BlockSpec(mixers=(SelfAttentionSpec(heads=2),)))
    apart = transformer_decoder().model_copy(update={"stack": StackSpec(blocks=blocks)})
    with pytest.raises(UsageError, match="may not look ahead"):
        pair(decoder=apart).build(SIZES)


@pytest.mark.parametrize("join", [PostNormSpec(), PreNormSpec(), HalvedSpec()])
def test_a_residual_needs_one_width(join: JoinSpec) -> None:
    with pytest.raises(UsageError, match="turns 7 into 11"):
        stack(RecurrentSpec(cell=GatedSpec(width=11)), join=join).build(7, None)


@pytest.mark.parametrize("spec", [SelfAttentionSpec(heads=5), MemoryAttentionSpec(heads=5)])
def test_heads_must_divide_the_width(spec: MixerSpec) -> None:
    with pytest.raises(UsageError, match="a width of 12 does not split into 5 heads"):
        spec.build(12, 12)


@pytest.mark.parametrize(
    "mixer",
    [
        MemoryAttentionSpec(heads=2),
        LookThenStepSpec(cell=GatedSpec(width=5), readout=3),
        RecurrentSpec(cell=GatedSpec(width=5), bridge=LastSpec()),
    ],
)
def test_an_encoder_has_no_memory_to_look_at(mixer: MixerSpec) -> None:
    with pytest.raises(UsageError, match="nothing in this model provides one"):
        pair(encoder=encoder(12, mixer)).build(SIZES)


def test_a_bridge_starts_forward_recurrences_only() -> None:
    with pytest.raises(UsageError, match="this one runs 'both'"):
        RecurrentSpec(cell=GatedSpec(width=5), direction="both", bridge=LastSpec()).build(7, 11)


def test_a_location_score_does_not_look_at_the_sequence_itself() -> None:
    with pytest.raises(UsageError, match="'location' looks at a memory"):
        SelfAttentionSpec(heads=2, score=LocationSpec()).build(12, None)


@pytest.mark.parametrize(
    ("sizes", "width", "shapes"),
    [
        ({"source": 13, "target": 11}, 12, r"source has \(13, 12\), target \(11, 12\)"),
        ({"source": 13, "target": 13}, 24, r"source has \(13, 12\), target \(13, 24\)"),
    ],
)
def test_tying_all_needs_one_vocabulary_and_one_width(sizes: dict[str, int], width: int, shapes: str) -> None:
    with pytest.raises(UsageError, match=shapes):
        pair(decoder=transformer_decoder(width), tie="all").build(sizes)


def test_a_shared_layer_needs_one_width() -> None:
    mixer = RecurrentSpec(cell=GatedSpec(width=11))
    with pytest.raises(UsageError, match="turns 7 into 11"):
        stack(mixer, repeat=2, shared=True).build(7, None)
    assert stack(mixer, repeat=2, shared=True).build(11, None).width == 11
    assert stack(mixer, repeat=1, shared=True).build(7, None).width == 11


def learned(longest: int) -> SequenceToSequence:
    def side(build: object, *mixers: MixerSpec) -> object:
        return build(12, *mixers, positions=LearnedSpec(longest=longest))

    spec = pair(
        encoder=side(encoder, SelfAttentionSpec(heads=2)),
        decoder=side(decoder, SelfAttentionSpec(heads=2), MemoryAttentionSpec(heads=2)),
    )
    return spec.build(SIZES)


def test_inputs_longer_than_the_learned_positions_are_refused_with_both_numbers() -> None:
    model = learned(5)
    six = Tokens.whole(torch.ones(2, 6, dtype=torch.long))
    five = Tokens.whole(six.ids[:, :5])
    with pytest.raises(UsageError, match="an input of 6 tokens, but this model has learned 5 positions"):
        model.start(six)
    state = model.start(five)
    with pytest.raises(UsageError, match="an input of 6 tokens, but this model has learned 5 positions"):
        model.read(six, state)
    _, state = model.read(five, state)
    with pytest.raises(UsageError, match="an input of 6 tokens, but this model has learned 5 positions"):
        model.step(six.ids[:, 0], state)


def test_a_model_says_how_long_inputs_may_be() -> None:
    model = learned(5)
    assert (model.longest_source, model.longest_target) == (5, 5)
    unlimited = pair().build(SIZES)
    assert (unlimited.longest_source, unlimited.longest_target) == (None, None)


def test_padding_asks_for_no_position() -> None:
    """A row that fills the table may be followed by padding, read whole or piece by piece."""
    model, ids = learned(5), torch.ones(2, 6, dtype=torch.long)
    real = torch.arange(6) < torch.tensor([[5], [2]])
    whole, _ = model.read(Tokens(ids, real), model.start(Tokens.whole(ids[:, :5])))
    state, pieces = model.start(Tokens.whole(ids[:, :5])), []
    for t in range(6):
        piece, state = model.read(Tokens(ids[:, t : t + 1], real[:, t : t + 1]), state)
        pieces.append(piece)
    torch.testing.assert_close(torch.cat(pieces, dim=1)[real], whole[real])


# ---------------------------------------------------------------- shared


@pytest.mark.parametrize(("tie", "tables"), [("none", 3), ("target", 2), ("all", 1)])
def test_tied_matrices_are_one_tensor(tie: str, tables: int) -> None:
    model = pair(tie=tie).build(SIZES)
    weights = (
        model.encoder.embedding.tokens.weight,
        model.decoder.embedding.tokens.weight,
        model.decoder.head.words.weight,
    )
    assert len({weight.data_ptr() for weight in weights}) == tables
    assert len({id(weight) for weight in weights}) == tables
    assert count(pair().build(SIZES)) - count(model) == (3 - tables) * 13 * 12


def test_a_tied_head_of_another_width_is_led_to_the_embeddings() -> None:
    model = pair(
        decoder=decoder(7, RecurrentSpec(cell=GatedSpec(width=11), bridge=LastSpec())), tie="target"
    ).build(SIZES)
    assert model.decoder.head.words.weight is model.decoder.embedding.tokens.weight
    assert model.decoder.head.lead is not None
    x = torch.randn(3, 11)
    expected = x @ model.decoder.head.lead.weight.T @ model.decoder.embedding.tokens.weight.T
    torch.testing.assert_close(model.predict(x), expected)


def test_a_shared_block_has_the_parameters_of_one_layer() -> None:
    def build(**fields: object) -> Stack:
        return stack(
            SelfAttentionSpec(heads=2), PointwiseSpec(hidden=7), join=PostNormSpec(), **fields
        ).build(12, None)

    one, three, shared = build(repeat=1), build(repeat=3), build(repeat=3, shared=True)
    assert count(three) == 3 * count(one)
    assert count(shared) == count(one)
    assert len(shared.layers) == 3


def test_a_shared_block_is_a_block_applied_again_each_time_with_its_own_state() -> None:
    """Three layers that hold the same weights compute what one shared layer computes, also token by token."""

    def build(shared: bool) -> SequenceToSequence:
        torch.manual_seed(0)
        mixers = (SelfAttentionSpec(heads=2), MemoryAttentionSpec(heads=2))
        block = BlockSpec(mixers=mixers, join=PostNormSpec(), repeat=3, shared=shared)
        spec = decoder(12, *mixers)
        spec = spec.model_copy(update={"stack": StackSpec(blocks=(block,))})
        return pair(encoder=both_ways(), decoder=spec).build(SIZES).double().eval()

    shared, apart = build(shared=True), build(shared=False)
    apart.load_state_dict(shared.state_dict())
    ids = torch.randint(1, 13, (3, 5))
    source = Tokens.whole(torch.randint(1, 13, (3, 7)))
    expected, _ = apart.read(Tokens.whole(ids), apart.start(source))
    got, _ = shared.read(Tokens.whole(ids), shared.start(source))
    torch.testing.assert_close(got, expected)
    state = shared.start(source)
    for t in range(5):
        log_probs, state = shared.step(ids[:, t], state)
        torch.testing.assert_close(log_probs, apart.predict(expected[:, t]).log_softmax(-1))
