"""Weights of torch's own layers put into ours: the two must then compute the same numbers."""

import torch
from torch import Tensor, nn

from regard.mixers.attention import MemoryAttention, SelfAttention
from regard.mixers.pointwise import Pointwise
from regard.mixers.recurrent import Recurrent
from regard.stacks.stack import Layer, Stack


def randomise(module: nn.Module, seed: int, size: float = 0.3) -> None:
    """Every parameter and buffer something of its own: nothing may hide behind a one or a zero."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for tensor in (*module.parameters(), *module.buffers()):
            if tensor.is_floating_point():
                tensor.copy_(size * torch.randn(tensor.shape, generator=generator, dtype=torch.double))


def copy(source: nn.Module, target: nn.Module) -> None:
    """Modules with the same parameters: linear layers, norms."""
    target.load_state_dict(source.state_dict())


def copy_self_attention(source: nn.MultiheadAttention, target: SelfAttention) -> None:
    target.project.weight.data = source.in_proj_weight.data
    target.project.bias.data = source.in_proj_bias.data
    copy(source.out_proj, target.out)


def copy_memory_attention(source: nn.MultiheadAttention, target: MemoryAttention) -> None:
    """torch keeps one matrix when widths agree and three when the memory has its own."""
    width = source.embed_dim
    if source.in_proj_weight is None:
        query = source.q_proj_weight.data
        keys_and_values = torch.cat((source.k_proj_weight.data, source.v_proj_weight.data))
    else:
        query, keys_and_values = source.in_proj_weight.data.split((width, 2 * width))
    target.query.weight.data, target.project.weight.data = query, keys_and_values
    target.query.bias.data, target.project.bias.data = source.in_proj_bias.data.split((width, 2 * width))
    copy(source.out_proj, target.out)


def copy_feedforward(widen: nn.Linear, narrow: nn.Linear, target: Pointwise) -> None:
    copy(widen, target.network.widen)
    copy(narrow, target.network.narrow)


def copy_encoder_layer(source: nn.TransformerEncoderLayer, target: Layer) -> None:
    looking, thinking = target.mixers
    copy_self_attention(source.self_attn, looking)
    copy_feedforward(source.linear1, source.linear2, thinking)
    for norm, join in zip((source.norm1, source.norm2), target.joins, strict=True):
        copy(norm, join.norm)


def copy_decoder_layer(source: nn.TransformerDecoderLayer, target: Layer) -> None:
    looking, looking_back, thinking = target.mixers
    copy_self_attention(source.self_attn, looking)
    copy_memory_attention(source.multihead_attn, looking_back)
    copy_feedforward(source.linear1, source.linear2, thinking)
    for norm, join in zip((source.norm1, source.norm2, source.norm3), target.joins, strict=True):
        copy(norm, join.norm)


def copy_recurrence(source: nn.RNNBase, target: Stack) -> None:
    """Layers and directions, in torch's order: weights of input and state, biases of both."""
    directions = 2 if source.bidirectional else 1
    for number, layer in enumerate(target.layers):
        (mixer,) = layer.mixers
        assert isinstance(mixer, Recurrent)
        for direction, cell in enumerate(mixer.cells):
            given: list[Tensor] = source.all_weights[number * directions + direction]
            for weight, value in zip(cell.weights, given, strict=True):
                weight.data = value.data
