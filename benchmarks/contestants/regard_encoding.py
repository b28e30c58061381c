"""Regard's reader: means over real tokens, normalised, by the path that ``run.embed`` takes."""

import numpy as np
import protocol
import sentences
import torch

from regard.core.sequences import Tokens
from regard.parts.pooling import MeanSpec
from regard.recipes.bert import bert_model
from regard.training.memory import keep_freed_memory


def main() -> None:
    keep_freed_memory()  # as the command does
    asked = sentences.asked()
    torch.manual_seed(1)
    spec = bert_model(asked.layers, asked.width, asked.heads, asked.positions, segments=2).encoder
    spec = spec.override([f"stack.blocks.0.mixers.1.hidden={asked.hidden}"])
    reader, rows = spec.build(asked.vocabulary).eval(), sentences.drawn(asked.texts, asked.vocabulary)

    @torch.inference_mode()
    def step() -> protocol.Step:
        room, found = 0, np.zeros((len(rows), asked.width), np.float32)
        for numbers, ids, lengths in sentences.batches(rows, asked.rows):
            real = torch.from_numpy(np.arange(ids.shape[1]) < lengths[:, None])
            pooled = MeanSpec().pool(reader.layers(Tokens(torch.from_numpy(ids), real))[-1], real)
            found[numbers] = torch.nn.functional.normalize(pooled, dim=-1).numpy()
            room += ids.size
        return protocol.Step(sum(map(len, rows)), room)

    protocol.ready(parameters=sum(weight.numel() for weight in reader.parameters()))
    protocol.serve(step)


main()
