"""onnxruntime on transformers' BertModel, exported once."""

import tempfile
from pathlib import Path

import numpy as np
import onnxruntime
import protocol
import sentences
import torch
from hugging_face_encoding import bert


class States(torch.nn.Module):
    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        states: torch.Tensor = self.model(input_ids=ids, attention_mask=mask).last_hidden_state
        return states


def main() -> None:
    asked = sentences.asked()
    model, rows = bert(asked), sentences.drawn(asked.texts, asked.vocabulary)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "reader.onnx"
        example = torch.full((2, 7), 5), torch.ones(2, 7, dtype=torch.long)
        free = {0: torch.export.Dim("batch", min=1), 1: torch.export.Dim("time", min=2, max=asked.positions)}
        torch.onnx.export(
            States(model), example, str(path), dynamo=True, dynamic_shapes=(free, free), verbose=False
        )
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [given.name for given in session.get_inputs()]

    def step() -> protocol.Step:
        room, found = 0, np.zeros((len(rows), asked.width), np.float32)
        for numbers, ids, lengths in sentences.batches(rows, asked.rows):
            mask = (np.arange(ids.shape[1]) < lengths[:, None]).astype(np.int64)
            (states,) = session.run(None, dict(zip(names, (ids, mask), strict=True)))
            means = (states * mask[..., None]).sum(1) / lengths[:, None]
            found[numbers] = means / np.linalg.norm(means, axis=1, keepdims=True)
            room += ids.size
        return protocol.Step(sum(map(len, rows)), room)

    protocol.ready(version=onnxruntime.__version__)
    protocol.serve(step)


main()
