"""transformers' BertModel: means over real tokens, normalised, as sentence-transformers does it."""

from typing import Any

import numpy as np
import protocol
import sentences
import torch
import transformers
from transformers import BertConfig, BertModel


def bert(asked: Any) -> BertModel:
    torch.manual_seed(1)
    config = BertConfig(
        vocab_size=asked.vocabulary,
        hidden_size=asked.width,
        num_hidden_layers=asked.layers,
        num_attention_heads=asked.heads,
        intermediate_size=asked.hidden,
        max_position_embeddings=asked.positions,
    )
    return BertModel(config, add_pooling_layer=False).eval()


def main() -> None:
    asked = sentences.asked()
    model, rows = bert(asked), sentences.drawn(asked.texts, asked.vocabulary)

    @torch.inference_mode()
    def step() -> protocol.Step:
        room, found = 0, np.zeros((len(rows), asked.width), np.float32)
        for numbers, ids, lengths in sentences.batches(rows, asked.rows):
            mask = torch.from_numpy((np.arange(ids.shape[1]) < lengths[:, None]).astype(np.int64))
            states = model(input_ids=torch.from_numpy(ids), attention_mask=mask).last_hidden_state
            means = (states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
            found[numbers] = torch.nn.functional.normalize(means, dim=-1).numpy()
            room += ids.size
        return protocol.Step(sum(map(len, rows)), room)

    protocol.ready(
        parameters=sum(weight.numel() for weight in model.parameters()), version=transformers.__version__
    )
    protocol.serve(step)


if __name__ == "__main__":
    main()
