"""Examples in a report: for each its tokens, its alignment, and every head of every layer.

Text is written here, so that it can be read, searched and printed without scripts; pictures are drawn by the
scripts in ``assets`` from the weights that the page carries.
"""

import math
from collections.abc import Sequence
from html import escape
from typing import Any

from regard.inspection import glyphs
from regard.inspection.alignment import Matrix, alignment, rollout
from regard.inspection.packing import pack
from regard.inspection.trace import Trace

STYLES = ("page.css",)
SPACE = "▁"
"""Stands for a space in pieces of words; shown paler than they are."""
SCRIPTS = ("dom.js", "weights.js", "palette.js", "heatmap.js", "tokens.js", "heads.js", "look.js")


def examples(traces: Sequence[Trace], opened: bool = True) -> str:
    """A section for each trace, without its pictures; ``opened``: the heads of the first are in sight."""
    many = len(traces) > 1
    return "\n".join(
        _example(trace, number, f"Example {number + 1}" if many else "", opened and number == 0)
        for number, trace in enumerate(traces)
    )


def examples_data(traces: Sequence[Trace]) -> list[dict[str, Any]]:
    """What the scripts need to draw the pictures of ``examples``."""
    return [trace.to_dict("uint8") | {"views": _views(trace)} for trace in traces]


def _example(trace: Trace, number: int, heading: str, opened: bool) -> str:
    heading = f"<h2>{heading}</h2>" if heading else ""
    source = [_token(piece, "") for piece in trace.source]
    output = [
        _token(piece, _probability(log_prob))
        for piece, log_prob in zip(trace.predictions, trace.log_probs, strict=True)
    ]
    return f"""<section class="example" data-example="{number}">
{heading}
{_line("Source", source, glyphs.direction("".join(trace.source)))}
{_line("Output", output, glyphs.direction("".join(trace.target)))}
<p class="sum">{_summary(trace)}</p>
<div class="alignment"></div>
<details class="heads"{" open" if opened else ""}><summary>Every layer and head</summary></details>
<noscript><p>The pictures on this page are drawn by its own scripts, which are switched off.</p></noscript>
</section>"""


def _line(side: str, tokens: Sequence[str], direction: str) -> str:
    # A language model reads nothing before it writes: its empty line is not shown.
    hidden = "" if tokens else " hidden"
    return (
        f'<div class="line"{hidden}><h3>{side}</h3>'
        f'<ol class="tokens" data-side="{side.lower()}" dir="{direction}" '
        f'aria-label="{side} tokens">{"".join(tokens)}</ol></div>'
    )


def _token(piece: str, attributes: str) -> str:
    shown = escape(glyphs.visible(piece)).replace(SPACE, f'<span class="space">{SPACE}</span>')
    return f'<li><button type="button" class="token"{attributes}><bdi>{shown}</bdi></button></li>'


def _probability(log_prob: float) -> str:
    share = math.exp(log_prob)
    return f' style="--p:{share:.3f}" title="probability {share:.3f}"'


def _summary(trace: Trace) -> str:
    total = sum(trace.log_probs)
    least = min(range(len(trace.log_probs)), key=lambda row: trace.log_probs[row])
    name = f"<bdi>{escape(glyphs.visible(trace.predictions[least]))}</bdi>"
    ending = "" if trace.ended else "; cut off before its end"
    return (
        f"Log-probability {_signed(total)} over {len(trace.log_probs)} predictions; "
        f"least sure of {name} ({math.exp(trace.log_probs[least]):.2f}){ending}."
    )


def _signed(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


def _views(trace: Trace) -> dict[str, Any]:
    """Summaries beside the attentions themselves, where the model has what they sum up."""
    found = {
        "alignment": (alignment(trace), trace.predictions),
        "rollout": (rollout(trace), trace.source),
    }
    return {
        name: _view(matrix, rows, trace.source)
        for name, (matrix, rows) in found.items()
        if matrix is not None
    }


def _view(matrix: Matrix, rows: Sequence[str], columns: Sequence[str]) -> dict[str, Any]:
    return {"rows": list(rows), "columns": list(columns), "weights": pack(matrix[None], "uint8")}
