"""JoeyNMT's own search over its own recurrent model: with the run's weights, or of its shape."""

import importlib.metadata
import sys
from types import SimpleNamespace
from typing import Any

import recurrent_peer
import torch
from torch import Tensor

# JoeyNMT asks a backport for its version, which the standard library has had since Python 3.8.
sys.modules["importlib_metadata"] = importlib.metadata
# Only training draws.
recurrent_peer.stand_in("torch.utils.tensorboard", SummaryWriter=None)
recurrent_peer.stand_in("joeynmt.plotting", plot_heatmap=None)

from joeynmt.batch import Batch  # noqa: E402
from joeynmt.model import build_model  # noqa: E402
from joeynmt.search import search  # noqa: E402
from joeynmt.vocabulary import Vocabulary  # noqa: E402


def vocabulary(words: Any) -> Vocabulary:
    names = {"unk_token": "<unk>", "pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>"}
    numbers = {"unk_id": 0, "pad_id": 1, "bos_id": 2, "eos_id": 3}
    marks = SimpleNamespace(**names, **numbers, sep_token=None, lang_tags=[])
    found = Vocabulary([f"p{number}" for number in range(4, words.size)], marks)
    found.pad_index, found.unk_index, found.bos_index, found.eos_index = 0, 1, words.begin, words.end
    return found


def build(peer: recurrent_peer.Given) -> Any:
    cell, attention = ("gru", "bahdanau") if peer.learned is None else ("lstm", "luong")
    embeddings = {"embedding_dim": peer.width, "scale": False}
    shared = {"type": "recurrent", "rnn_type": cell, "num_layers": 1, "embeddings": embeddings}
    known = vocabulary(peer.words)
    model = build_model(
        {
            "encoder": {**shared, "hidden_size": peer.each_way, "bidirectional": True},
            "decoder": {
                **shared,
                "hidden_size": peer.hidden,
                "attention": attention,
                "init_hidden": "bridge",
                "input_feeding": True,
            },
            "tied_embeddings": True,
        },
        known,
        known,
    ).eval()
    if peer.learned is not None:
        take_over(model, peer.learned, peer.hidden)
    return model


@torch.no_grad()
def take_over(model: Any, learned: recurrent_peer.Learned, hidden: int) -> None:
    decoder = model.decoder
    model.src_embed.lut.weight.copy_(learned.embedding)
    for ending, cell in zip(("_l0", "_l0_reverse"), learned.reading, strict=True):
        for name, weight in cell.items():
            getattr(model.encoder.rnn, name + ending).copy_(weight)
    for name, weight in learned.stepping.items():
        getattr(decoder.rnn, f"{name}_l0").copy_(weight)
    decoder.attention.key_layer.weight.copy_(learned.score.t())
    found, state = learned.combine[0].split((learned.combine[0].shape[1] - hidden, hidden), dim=1)
    decoder.att_vector_layer.weight.copy_(torch.cat((state, found), dim=1))
    decoder.att_vector_layer.bias.copy_(learned.combine[1])
    decoder.output_layer.weight.copy_(learned.words)

    def first_state(encoder_final: Tensor) -> tuple[Tensor, Tensor]:
        """JoeyNMT's LSTM starts from one vector twice, Regard's from two."""
        both = torch.tanh(torch.nn.functional.linear(encoder_final, *learned.bridge))
        state, held = both.split(hidden, dim=1)
        return state[None].contiguous(), held[None].contiguous()

    decoder._init_hidden = first_state


def main() -> None:
    peer = recurrent_peer.given()
    model, device, words = build(peer), torch.device("cpu"), peer.words

    @torch.inference_mode()
    def translate(rows: recurrent_peer.Rows) -> list[list[int]]:
        longest = 2 * int(rows.lengths[0]) + 10
        batch = Batch(
            src=rows.ids,
            src_length=rows.lengths,
            src_prompt_mask=None,
            trg=None,
            trg_prompt_mask=None,
            indices=torch.arange(len(rows.ids)),
            device=device,
            pad_index=words.pad,
            eos_index=words.end,
            is_train=False,
        )
        found, _, _ = search(
            model=model,
            batch=batch,
            max_output_length=longest if peer.learned is not None else peer.length,
            min_output_length=1 if peer.learned is not None else peer.length,
            beam_size=peer.asked.beam,
            beam_alpha=1.0,
        )
        return found.tolist()  # type: ignore[no-any-return]

    recurrent_peer.compete(
        peer,
        translate,
        version=importlib.metadata.version("joeynmt"),
        parameters=sum(weight.numel() for weight in model.parameters()),
    )


main()
