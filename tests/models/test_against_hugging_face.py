"""A whole Transformer against ``transformers`` with the same weights: every logit, in padded batches."""

from collections.abc import Callable

import pytest
import torch
import transformers as hf
from torch import Tensor, nn

from regard.core.sequences import Tokens
from regard.models.sequence_to_sequence import SequenceToSequence
from regard.recipes.catalogue import recipe
from tests.apps.toys import LEARNED
from tests.models.hugging_face import END, PADDING, Theirs, bart, build_like, marian
from tests.models.torch_nn import randomise


@pytest.fixture(params=[bart, marian], ids=["bart", "marian"])
def models(request: pytest.FixtureRequest) -> tuple[Theirs, SequenceToSequence]:
    theirs: Theirs = request.param().double().eval()
    table = theirs.model.encoder.embed_positions.weight.detach().clone()
    randomise(theirs, seed=1)
    if request.param is marian:  # sinusoids are not learned: keep them as they are
        assert float(table[3, 0]) == pytest.approx(torch.sin(torch.tensor(3.0)).item())
        for side in (theirs.model.encoder, theirs.model.decoder):
            side.embed_positions.weight.data = table
    return theirs, build_like(theirs).double().eval()


def batch(*lengths: int, seed: int) -> Tokens:
    generator = torch.Generator().manual_seed(seed)
    rows = [torch.randint(0, PADDING, (length,), generator=generator).tolist() for length in lengths]
    return Tokens.pad(rows, PADDING)


SOURCE, TARGET = batch(7, 3, 5, 1, seed=2), batch(4, 6, 1, 5, seed=3)


def their_logits(theirs: Theirs) -> Tensor:
    with torch.no_grad():
        logits: Tensor = theirs(
            input_ids=SOURCE.ids,
            attention_mask=SOURCE.real.long(),
            decoder_input_ids=TARGET.ids,
            decoder_attention_mask=TARGET.real.long(),
            use_cache=False,
        ).logits
    return logits


def test_reading_the_whole_target_gives_their_logits(models: tuple[Theirs, SequenceToSequence]) -> None:
    theirs, ours = models
    hidden, _ = ours.read(TARGET, ours.start(SOURCE))
    expected = their_logits(theirs)
    assert float(expected.std()) > 0.1
    torch.testing.assert_close(ours.predict(hidden)[TARGET.real], expected[TARGET.real], rtol=1e-5, atol=1e-5)


def test_stepping_gives_their_log_probabilities(models: tuple[Theirs, SequenceToSequence]) -> None:
    theirs, ours = models
    expected = their_logits(theirs).log_softmax(-1)
    state = ours.start(SOURCE)
    for t in range(TARGET.ids.shape[1]):
        log_probs, state = ours.step(TARGET.ids[:, t], state)
        here = TARGET.real[:, t]
        torch.testing.assert_close(log_probs[here], expected[:, t][here], rtol=1e-5, atol=1e-5)


def test_greedy_decoding_writes_what_theirs_writes(models: tuple[Theirs, SequenceToSequence]) -> None:
    """Nine words, none of them twice: left alone, a model of random weights repeats its favourite."""
    theirs, ours = models
    written = theirs.generate(
        SOURCE.ids,
        attention_mask=SOURCE.real.long(),
        num_beams=1,
        do_sample=False,
        min_new_tokens=9,
        max_new_tokens=9,
        no_repeat_ngram_size=1,
        bad_words_ids=None,
    )
    state, tokens = ours.start(SOURCE), torch.full((4,), PADDING)
    allowed = torch.ones(4, ours.decoder.head.words.out_features).bool()
    allowed[:, END] = False
    for t in range(9):
        allowed[torch.arange(4), tokens] = False
        log_probs, state = ours.step(tokens, state)
        tokens = log_probs.masked_fill(~allowed, -torch.inf).argmax(-1)
        assert tokens.tolist() == written[:, t + 1].tolist()


WIDE = [
    "model.encoder.embedding.width=768",
    "model.encoder.stack.blocks.0.repeat=12",
    "model.encoder.stack.blocks.0.mixers.0.heads=12",
    "model.encoder.stack.blocks.0.mixers.1.hidden=3072",
]
"""What the guide says the base sizes are."""


@pytest.mark.parametrize(
    ("name", "settings", "words", "theirs", "more"),
    [
        ("bert_base", [], 30522, lambda: hf.BertForPreTraining(hf.BertConfig()), 0),
        # Theirs has two positions that no token ever stands at, and one kind of segment.
        ("roberta", [*WIDE, *LEARNED], 50265, lambda: hf.RobertaForMaskedLM(hf.RobertaConfig(
            vocab_size=50265, max_position_embeddings=514, type_vocab_size=1)), 3 * 768),
        ("albert", [*WIDE, *LEARNED, "model.relation.hidden=768"], 30000, lambda: hf.AlbertForPreTraining(
            hf.AlbertConfig(hidden_size=768, intermediate_size=3072, num_attention_heads=12)), 0),
    ],
    ids=["bert", "roberta", "albert"],
)  # fmt: skip
def test_original_sizes_have_as_many_weights_as_theirs(
    name: str, settings: list[str], words: int, theirs: Callable[[], nn.Module], more: int
) -> None:
    with torch.device("meta"):
        ours = recipe(name).override(settings).model.build({"text": words})
        other = theirs()
    assert weights_in(other) - weights_in(ours) == more


def test_a_small_electra_has_as_many_weights_as_theirs() -> None:
    """Clark et al. 2020 table 6: 12 layers, 256 wide, table 128; a generator a quarter as wide."""
    layers = [f"model.{part}.stack.blocks.0.repeat=12" for part in ("encoder", "generator.encoder")]
    with torch.device("meta"):
        ours = recipe("electra").override([*layers, *LEARNED]).model.build({"text": 30522})
        other = hf.ElectraForPreTraining(hf.ElectraConfig(type_vocab_size=1))
    assert weights_in(other) - weights_in(ours.encoder) - weights_in(ours.head) == 128


def weights_in(model: nn.Module) -> int:
    return sum(weight.numel() for weight in model.parameters())
