"""What is read off the last layer: words, labels, spans."""
