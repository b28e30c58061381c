"""gensim learns word vectors of a text whose words stand between blanks; says how long the learning took."""

import argparse
import json
import time
from pathlib import Path

from gensim.models import Word2Vec


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--mode", choices=["skip_gram", "cbow"], required=True)
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    asked = parser.parse_args()
    lines = asked.text.read_text(encoding="utf-8").lower().split("\n")
    sentences = [words for line in lines if (words := line.split())]
    model = Word2Vec(
        vector_size=100,
        window=5,
        min_count=5,
        sg=int(asked.mode == "skip_gram"),
        negative=5,
        sample=1e-3,
        workers=asked.threads,
        seed=asked.seed,
    )
    model.build_vocab(sentences)
    began = time.perf_counter()
    _, words = model.train(sentences, total_examples=model.corpus_count, epochs=asked.epochs)
    seconds = time.perf_counter() - began
    model.wv.save_word2vec_format(str(asked.out))
    print(json.dumps({"seconds": seconds, "words": words}))


if __name__ == "__main__":
    main()
