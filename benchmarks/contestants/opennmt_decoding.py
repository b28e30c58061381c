"""OpenNMT-py's own search over its own recurrent model: with the run's weights, or of its shape."""

from typing import Any

import pyonmttok
import recurrent_peer
import torch
from torch import Tensor, nn

# Imported, and not used by who only translates.
recurrent_peer.stand_in("spacy")
recurrent_peer.stand_in("fasttext")
recurrent_peer.stand_in("flask", Flask=None, jsonify=None, request=None)
recurrent_peer.stand_in("waitress", serve=None)

import onmt  # noqa: E402
from onmt.decoders import InputFeedRNNDecoder  # noqa: E402
from onmt.encoders import RNNEncoder  # noqa: E402
from onmt.models import NMTModel  # noqa: E402
from onmt.modules import Embeddings  # noqa: E402
from onmt.translate import GNMTGlobalScorer, Translator  # noqa: E402

MARKS = ["<blank>", "<unk>", "<s>", "</s>"]
"""Padding, unknown, begin and end, with Regard's numbers."""


def build(peer: recurrent_peer.Given) -> Any:
    # Its attention has one width for what looks and what is looked at.
    cell, attention = ("GRU", "mlp") if peer.learned is None else ("LSTM", "general")
    size = peer.words.size
    embeddings = Embeddings(peer.width, size, peer.words.pad)
    encoder = RNNEncoder(cell, True, 1, peer.hidden, 0.0, embeddings)
    decoder = InputFeedRNNDecoder(cell, True, 1, peer.hidden, attn_type=attention, embeddings=embeddings)
    model = NMTModel(encoder, decoder)
    model.generator = nn.Linear(peer.hidden, size)
    if peer.learned is not None:
        take_over(model, peer.learned, peer.hidden)
    return model.eval()


@torch.no_grad()
def take_over(model: Any, learned: recurrent_peer.Learned, hidden: int) -> None:
    decoder = model.decoder
    model.encoder.embeddings.word_lut.weight.copy_(learned.embedding)
    for ending, cell in zip(("_l0", "_l0_reverse"), learned.reading, strict=True):
        for name, weight in cell.items():
            getattr(model.encoder.rnn, name + ending).copy_(weight)
    for name, weight in learned.stepping.items():
        getattr(decoder.rnn.layers[0], name).copy_(weight)
    decoder.attn.linear_in.weight.copy_(learned.score)
    # With this score OpenNMT-py combines without a bias.
    decoder.attn.linear_out = nn.Linear(learned.combine[0].shape[1], hidden)
    decoder.attn.linear_out.weight.copy_(learned.combine[0])
    decoder.attn.linear_out.bias.copy_(learned.combine[1])
    model.generator.weight.copy_(learned.words)
    model.generator.bias.zero_()

    def first_state(source: Tensor, _: Tensor, ends: tuple[Tensor, Tensor]) -> None:
        """OpenNMT-py's decoder starts where its encoder ended, Regard's from a map of that."""
        both = torch.tanh(nn.functional.linear(torch.cat((ends[0][0], ends[0][1]), 1), *learned.bridge))
        decoder.state["hidden"] = tuple(part[None].contiguous() for part in both.split(hidden, dim=1))
        decoder.state["input_feed"] = both.new_zeros(1, len(both), hidden)
        decoder.state["coverage"] = None

    decoder.init_state = first_state


def main() -> None:
    peer = recurrent_peer.given()
    words, beam, model = peer.words, peer.asked.beam, build(peer)
    names = [f"p{number}" for number in range(len(MARKS), words.size)]
    known = pyonmttok.build_vocab_from_tokens(names, special_tokens=MARKS)
    as_long = peer.learned is None
    translator = Translator(
        model,
        {"src": known, "tgt": known, "decoder_start_token": "<s>"},
        min_length=peer.length if as_long else 0,
        max_length=peer.length if as_long else 1000,
        max_length_ratio=0 if as_long else 2.0,
        beam_size=beam,
        random_sampling_topk=1 if beam == 1 else 0,
        global_scorer=GNMTGlobalScorer(1.0, 0.0, "avg", "none"),
        report_score=False,
    )

    @torch.inference_mode()
    def translate(rows: recurrent_peer.Rows) -> list[list[int]]:
        batch = {
            "src": rows.ids[:, :, None],
            "srclen": rows.lengths,
            "ind_in_bucket": torch.arange(len(rows.ids)),
        }
        return [one[0].tolist() for one in translator.translate_batch(batch, False)["predictions"]]

    recurrent_peer.compete(
        peer,
        translate,
        version=onmt.__version__,
        parameters=sum(weight.numel() for weight in model.parameters()),
    )


main()
