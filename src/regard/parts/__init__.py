"""Single ideas as single modules: scores and attention, positions, embeddings, cells, norms, poolings."""
