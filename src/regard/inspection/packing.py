"""Arrays of numbers inside JSON: little-endian bytes in base64, beside their shape.

``float32`` keeps every bit. ``float16`` takes half the room, right to 1/2,048 of each number. ``uint8``, for
weights, takes a quarter: each row is divided by its largest weight, which is kept in ``scale``, so an
error is at most 1/510 of that, however long the row.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import numpy as np
from jaxtyping import Float32

from regard.core.errors import DataError

Encoding: TypeAlias = Literal["float32", "float16", "uint8"]
Weights: TypeAlias = Float32[np.ndarray, "heads rows columns"]
_LARGEST_HALF = 60_000.0


def pack(weights: Weights, encoding: Encoding) -> dict[str, Any]:
    if encoding == "float16" and np.abs(weights).max(initial=0.0) > _LARGEST_HALF:
        encoding = "float32"
    described: dict[str, Any] = {"encoding": encoding, "shape": list(weights.shape)}
    if encoding == "float32":
        return described | {"data": _text(weights.astype("<f4"))}
    if encoding == "float16":
        return described | {"data": _text(weights.astype("<f2"))}
    scale = weights.max(axis=-1, initial=0.0)
    divisor = np.where(scale > 0, scale, 1.0)[..., None]
    levels = np.rint(weights / divisor * 255).astype(np.uint8)
    return described | {"scale": _text(scale.astype("<f4")), "data": _text(levels)}


def unpack(packed: Mapping[str, Any]) -> Weights:
    try:
        heads, rows, columns = (int(size) for size in packed["shape"])
        match packed["encoding"]:
            case "float32":
                flat = _numbers(packed["data"], "<f4")
                return flat.reshape(heads, rows, columns)
            case "float16":
                return _numbers(packed["data"], "<f2").astype(np.float32).reshape(heads, rows, columns)
            case "uint8":
                levels = _numbers(packed["data"], "u1").reshape(heads, rows, columns)
                scale = _numbers(packed["scale"], "<f4").reshape(heads, rows, 1)
                return (levels * (scale / np.float32(255))).astype(np.float32)
            case other:
                raise DataError(f"expected 'float32', 'float16' or 'uint8', got {other!r}", field="encoding")
    except (KeyError, TypeError, ValueError, binascii.Error) as error:
        raise DataError(f"not an array of weights: {error}", field="weights") from None


def _text(values: np.ndarray) -> str:
    return base64.b64encode(values.tobytes()).decode("ascii")


def _numbers(text: str, kind: str) -> np.ndarray:
    values = np.frombuffer(base64.b64decode(text, validate=True), dtype=kind)
    return values.astype(values.dtype.newbyteorder("="))
