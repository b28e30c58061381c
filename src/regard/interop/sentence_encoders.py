"""What sentence-transformers stores beside a reader: how the states of a text become its vector."""

from pathlib import Path
from typing import Any

from regard.core.errors import UsageError
from regard.interop.hugging_face_files import read_json, read_json_if_there, to_json
from regard.parts.pooling import FirstSpec, LastSpec, MaxSpec, MeanSpec, PoolingSpec, SummingUpSpec

MODULES, SENTENCES, POOLING = "modules.json", "sentence_bert_config.json", "1_Pooling/config.json"
_MODES: dict[str, tuple[str, PoolingSpec]] = {
    "mean": ("pooling_mode_mean_tokens", MeanSpec()),
    "cls": ("pooling_mode_cls_token", FirstSpec()),
    "max": ("pooling_mode_max_tokens", MaxSpec()),
    "lasttoken": ("pooling_mode_lasttoken", LastSpec()),
}


def read_summing_up(folder: Path) -> tuple[SummingUpSpec, int | None]:
    """As the folder says, and how many tokens of a text are read; the mean of all where it is silent."""
    if not (folder / MODULES).exists():
        return SummingUpSpec(), None
    modules = read_json(folder / MODULES, list)
    kinds = [str(module.get("type", "")).rsplit(".", 1)[-1] for module in modules]
    if strange := [kind for kind in kinds if kind not in ("Transformer", "Pooling", "Normalize")]:
        raise UsageError(f"{folder / MODULES}: regard has no part for {strange[0]!r} in a sentence encoder")
    paths = [str(module.get("path", "")) for module in modules]
    said = (
        read_json_if_there(folder / paths[kinds.index("Pooling")] / "config.json")
        if "Pooling" in kinds
        else {}
    )
    chosen = [
        spec for mode, (flag, spec) in _MODES.items() if said.get(flag) or said.get("pooling_mode") == mode
    ]
    if len(chosen) > 1 or (said and not chosen):
        raise UsageError(f"{folder / POOLING}: regard pools by one of {', '.join(_MODES)}")
    pooling = chosen[0] if chosen else MeanSpec()
    longest = read_json_if_there(folder / SENTENCES).get("max_seq_length")
    return SummingUpSpec(pooling=pooling, normalise="Normalize" in kinds), longest


def write_summing_up(summing: SummingUpSpec, longest: int, width: int) -> dict[str, bytes]:
    """The same files; none where theirs have no word for it."""
    flags = {flag: summing.pooling == spec for flag, spec in _MODES.values()}
    if summing.layer != -1 or not any(flags.values()):
        return {}
    kinds = ["Transformer", "Pooling", *(["Normalize"] if summing.normalise else [])]
    modules = [
        {
            "idx": number,
            "name": str(number),
            "path": "" if number == 0 else f"{number}_{kind}",
            "type": f"sentence_transformers.models.{kind}",
        }
        for number, kind in enumerate(kinds)
    ]
    pooling: dict[str, Any] = {"word_embedding_dimension": width, **flags}
    cut = {"max_seq_length": longest, "do_lower_case": False}
    return {MODULES: to_json(modules), SENTENCES: to_json(cut), POOLING: to_json(pooling)}
