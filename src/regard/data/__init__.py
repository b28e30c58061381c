"""From the files people have to batches: readers, tokenizers, stores, batches, embedded corpora."""
