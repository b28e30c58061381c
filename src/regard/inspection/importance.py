"""How much every head matters: what the answer loses when it is switched off (Michel et al. 2019 §3)."""

from typing import Any

from torch import nn

from regard.inspection.interventions import Intervention, edits_of
from regard.inspection.look import Look
from regard.inspection.trace import trace_writing
from regard.tasks.task import Task


def importance(model: nn.Module, task: Task, seen: Look) -> list[dict[str, Any]]:
    """For each attention and head: the change in log-probability of the answer, one head off at a time.

    None where an answer is not written token by token.
    """
    target = seen.question.target or next(iter(seen.answer.candidates), None)
    written = task.written(seen.question.text, target)
    if not written.ids:
        return []
    whole, found = sum(seen.trace.log_probs), []
    for attention in seen.trace.attentions:
        for head in range(attention.heads):
            edits = edits_of([Intervention("off", attention.name, (head,))])
            without = sum(trace_writing(model, written, edits).log_probs)
            found.append({"name": attention.name, "head": head, "change": without - whole})
    return found
