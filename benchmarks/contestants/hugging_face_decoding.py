"""``generate`` of transformers: a Marian of the run's shape, which writes as many tokens as the run does."""

import decoding
import protocol
import torch
import transformers
from transformers import MarianConfig, MarianMTModel

import regard

TOGETHER = 64


def main() -> None:
    asked = decoding.asked()
    run = regard.load(asked.run)
    leaves, words = run.spec.model.paths(), run.lexicon["source"]
    written = [len(answer.candidates[0].pieces) for answer in run.answers(asked.lines[:200])]
    length = round(sum(written) / len(written))
    config = MarianConfig(
        vocab_size=words.size,
        d_model=leaves["encoder.embedding.width"],
        encoder_layers=leaves["encoder.stack.blocks.0.repeat"],
        decoder_layers=leaves["decoder.stack.blocks.0.repeat"],
        encoder_ffn_dim=leaves["encoder.stack.blocks.0.mixers.1.hidden"],
        decoder_ffn_dim=leaves["decoder.stack.blocks.0.mixers.2.hidden"],
        encoder_attention_heads=leaves["encoder.stack.blocks.0.mixers.0.heads"],
        decoder_attention_heads=leaves["decoder.stack.blocks.0.mixers.0.heads"],
        pad_token_id=words.pad,
        eos_token_id=words.end,
        decoder_start_token_id=words.begin,
        forced_eos_token_id=None,
    )
    model = MarianMTModel(config).eval()

    @torch.inference_mode()
    def translated(lines: list[str]) -> list[str]:
        rows = sorted(words.encode_many(lines), key=len)
        texts = []
        for begin in range(0, len(rows), TOGETHER):
            some = [torch.tensor([*row, words.end]) for row in rows[begin : begin + TOGETHER]]
            ids = torch.nn.utils.rnn.pad_sequence(some, batch_first=True, padding_value=words.pad)
            found = model.generate(
                ids,
                attention_mask=(ids != words.pad).long(),
                num_beams=asked.beam,
                do_sample=False,
                min_new_tokens=length,
                max_new_tokens=length,
            )
            texts += [words.decode(row) for row in found.tolist()]
        return texts

    def step() -> protocol.Step:
        if asked.alone is None:
            return decoding.answered(translated(asked.lines))
        return decoding.answered([text for line in asked.lines for text in translated([line])])

    protocol.ready(version=transformers.__version__, tokens=length)
    protocol.serve(step)


main()
