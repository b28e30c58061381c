"""A GPT-2 model in Hugging Face's Trainer; each optimiser step waits for the arena."""

import argparse
from pathlib import Path

import numpy as np
import protocol
import torch
import transformers
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
from turns import TakesTurns


class Windows(Dataset[dict[str, torch.Tensor]]):
    def __init__(self, stream: np.ndarray, window: int) -> None:
        self.stream, self.window = stream, window

    def __len__(self) -> int:
        return (len(self.stream) - 1) // self.window

    def __getitem__(self, place: int) -> dict[str, torch.Tensor]:
        ids = torch.from_numpy(self.stream[place * self.window : (place + 1) * self.window])
        return {"input_ids": ids, "labels": ids}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True)
    for name in ("layers", "width", "heads", "window", "rows"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--dropout", type=float, required=True)
    parser.add_argument("--bfloat16", action="store_true", help="products in bfloat16, as torch does it")
    asked = parser.parse_args()
    with np.load(asked.folder / "text.npz") as file:
        stream, vocabulary = file["stream"].astype(np.int64), int(file["vocabulary"])
    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=vocabulary,
            n_positions=asked.window,
            n_embd=asked.width,
            n_layer=asked.layers,
            n_head=asked.heads,
            resid_pdrop=asked.dropout,
            embd_pdrop=asked.dropout,
            attn_pdrop=asked.dropout,
            bos_token_id=3,
            eos_token_id=3,
        )
    )
    arguments = TrainingArguments(
        output_dir=str(asked.folder / "hugging_face_text"),
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
    )
    turns = TakesTurns()
    # Within a window every token but the first is predicted.
    predictions = asked.rows * (asked.window - 1)
    turns.size = protocol.Step(predictions, predictions)
    trainer = Trainer(model=model, args=arguments, train_dataset=Windows(stream, asked.window))
    trainer.add_callback(turns)
    protocol.ready(
        parameters=sum(weight.numel() for weight in model.parameters()),
        vocabulary=vocabulary,
        version=transformers.__version__,
    )
    trainer.train()


main()
