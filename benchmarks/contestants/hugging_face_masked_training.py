"""BertForMaskedLM, or BertForPreTraining, in Hugging Face's Trainer; each step waits for the arena."""

import argparse
from pathlib import Path

import numpy as np
import protocol
import torch
import transformers
from torch.utils.data import Dataset
from transformers import BertConfig, BertForMaskedLM, BertForPreTraining, Trainer, TrainingArguments
from turns import TakesTurns

IGNORED = -100


class Rows(Dataset[np.ndarray]):
    def __init__(self, stream: np.ndarray, room: int) -> None:
        self.stream, self.room = stream, room

    def __len__(self) -> int:
        return len(self.stream) // self.room

    def __getitem__(self, place: int) -> np.ndarray:
        return self.stream[place * self.room : (place + 1) * self.room]


class Collate:
    """Marks around passages; 15 % hidden, of which 80 % show a mark and 10 % some other token."""

    def __init__(self, stream: np.ndarray, vocabulary: int, marks: np.ndarray, pairs: bool) -> None:
        _, _, self.begin, self.end, self.hidden = (int(mark) for mark in marks)
        self.stream, self.vocabulary, self.pairs = stream, vocabulary, pairs
        self.random = np.random.default_rng(1)

    def __call__(self, rows: list[np.ndarray]) -> dict[str, torch.Tensor]:
        random, segments, follows = self.random, [], []
        texts = []
        for row in rows:
            if not self.pairs:
                texts.append(np.concatenate(([self.begin], row, [self.end])))
                continue
            cut, holds = int(random.integers(len(row) // 4, 3 * len(row) // 4)), bool(random.random() < 0.5)
            second = row[cut:]
            if not holds:
                start = int(random.integers(0, len(self.stream) - len(second)))
                second = self.stream[start : start + len(second)]
            texts.append(np.concatenate(([self.begin], row[:cut], [self.end], second, [self.end])))
            segments.append(np.repeat([0, 1], [cut + 2, len(second) + 1]))
            follows.append(0 if holds else 1)
        ids = np.stack(texts).astype(np.int64)
        asked = (random.random(ids.shape) < 0.15) & (ids != self.begin) & (ids != self.end)
        fate = random.random(ids.shape)
        shown = np.where(asked & (fate < 0.8), self.hidden, ids)
        other = random.integers(5, self.vocabulary, ids.shape)
        shown = np.where(asked & (fate >= 0.8) & (fate < 0.9), other, shown)
        batch = {
            "input_ids": torch.from_numpy(shown),
            "labels": torch.from_numpy(np.where(asked, ids, IGNORED)),
        }
        if self.pairs:
            batch["token_type_ids"] = torch.from_numpy(np.stack(segments))
            batch["next_sentence_label"] = torch.tensor(follows)
        return batch


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True)
    for name in ("layers", "width", "heads", "window", "rows"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--dropout", type=float, required=True)
    parser.add_argument("--pairs", action="store_true")
    parser.add_argument("--bfloat16", action="store_true", help="products in bfloat16, as torch does it")
    asked = parser.parse_args()
    with np.load(asked.folder / "text.npz") as file:
        stream, vocabulary, marks = file["stream"], int(file["vocabulary"]), file["marks"]
    config = BertConfig(
        vocab_size=vocabulary,
        hidden_size=asked.width,
        num_hidden_layers=asked.layers,
        num_attention_heads=asked.heads,
        intermediate_size=4 * asked.width,
        max_position_embeddings=512,
        hidden_dropout_prob=asked.dropout,
        attention_probs_dropout_prob=0.0,
        pad_token_id=0,
    )
    model = BertForPreTraining(config) if asked.pairs else BertForMaskedLM(config)
    arguments = TrainingArguments(
        output_dir=str(asked.folder / "hugging_face"),
        max_steps=1_000_000,
        per_device_train_batch_size=asked.rows,
        learning_rate=1e-4,
        max_grad_norm=1.0,
        optim="adamw_torch_fused",
        use_cpu=True,
        bf16=asked.bfloat16,
        save_strategy="no",
        logging_strategy="no",
        report_to=[],
        disable_tqdm=True,
        remove_unused_columns=False,
    )
    turns = TakesTurns()
    turns.size = protocol.Step(asked.rows * asked.window, asked.rows * asked.window)
    room = asked.window - (3 if asked.pairs else 2)
    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=Rows(stream, room),
        data_collator=Collate(stream, vocabulary, marks, asked.pairs),
    )
    trainer.add_callback(turns)
    protocol.ready(
        parameters=sum(weight.numel() for weight in model.parameters()),
        vocabulary=vocabulary,
        version=transformers.__version__,
    )
    trainer.train()


main()
