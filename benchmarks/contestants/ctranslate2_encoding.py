"""CTranslate2's encoder with the weights of transformers' BertModel, in 32 bits."""

import tempfile
from typing import Any

import ctranslate2
import numpy as np
import protocol
import sentences
from ctranslate2.specs import TransformerEncoderModelSpec, common_spec, transformer_spec
from hugging_face_encoding import bert


def converted(model: Any, asked: Any) -> TransformerEncoderModelSpec:
    weights = {name: tensor.numpy() for name, tensor in model.state_dict().items()}

    def linear(spec: Any, *names: str) -> None:
        spec.weight = np.concatenate([weights[f"{name}.weight"] for name in names])
        spec.bias = np.concatenate([weights[f"{name}.bias"] for name in names])

    def norm(spec: Any, name: str) -> None:
        spec.gamma, spec.beta = weights[f"{name}.weight"], weights[f"{name}.bias"]

    encoder = transformer_spec.TransformerEncoderSpec(
        asked.layers,
        asked.heads,
        pre_norm=False,
        activation=common_spec.Activation.GELU,
        layernorm_embedding=True,
        num_source_embeddings=2,
        embeddings_merge=common_spec.EmbeddingsMerge.ADD,
    )
    encoder.scale_embeddings = False
    encoder.embeddings[0].weight = weights["embeddings.word_embeddings.weight"]
    encoder.embeddings[1].weight = weights["embeddings.token_type_embeddings.weight"]
    encoder.position_encodings.encodings = weights["embeddings.position_embeddings.weight"]
    norm(encoder.layernorm_embedding, "embeddings.LayerNorm")
    for number, layer in enumerate(encoder.layer):
        name = f"encoder.layer.{number}"
        own = f"{name}.attention.self"
        linear(layer.self_attention.linear[0], f"{own}.query", f"{own}.key", f"{own}.value")
        linear(layer.self_attention.linear[1], f"{name}.attention.output.dense")
        norm(layer.self_attention.layer_norm, f"{name}.attention.output.LayerNorm")
        linear(layer.ffn.linear_0, f"{name}.intermediate.dense")
        linear(layer.ffn.linear_1, f"{name}.output.dense")
        norm(layer.ffn.layer_norm, f"{name}.output.LayerNorm")
    spec = TransformerEncoderModelSpec(encoder)
    spec.config.unk_token = spec.config.bos_token = spec.config.eos_token = "t0"
    spec.config.layer_norm_epsilon = 1e-12
    spec.register_vocabulary([f"t{number}" for number in range(asked.vocabulary)])
    return spec


def main() -> None:
    asked = sentences.asked()
    model, rows = bert(asked), sentences.drawn(asked.texts, asked.vocabulary)
    with tempfile.TemporaryDirectory() as folder:
        spec = converted(model, asked)
        spec.validate()
        spec.optimize()
        spec.save(folder)
        encoder = ctranslate2.Encoder(folder, device="cpu", inter_threads=1, intra_threads=0)

    def step() -> protocol.Step:
        room, found = 0, np.zeros((len(rows), asked.width), np.float32)
        for numbers, ids, lengths in sentences.batches(rows, asked.rows):
            given = [ids[row, :length].tolist() for row, length in enumerate(lengths)]
            types = [[0] * length for length in lengths]
            states = np.array(encoder.forward_batch(given, token_type_ids=types).last_hidden_state)
            real = np.arange(ids.shape[1]) < lengths[:, None]
            means = (states * real[..., None]).sum(1) / lengths[:, None]
            found[numbers] = means / np.linalg.norm(means, axis=1, keepdims=True)
            room += ids.size
        return protocol.Step(sum(map(len, rows)), room)

    protocol.ready(version=ctranslate2.__version__)
    protocol.serve(step)


main()
