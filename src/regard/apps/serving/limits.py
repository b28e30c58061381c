"""What a server takes on, in one place."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    body: int = 2_000_000
    """Bytes of a request."""
    reading: float = 20.0
    """Seconds a client may take to send it."""
    texts: int = 128
    """Texts of a request."""
    characters: int = 50_000
    """Characters of a text."""
    tokens: int = 4_096
    """Tokens of a text."""
    answers: int = 16
    """Answers to a text, and hypotheses of a beam."""
    answer_tokens: int = 4_096
    """Tokens of an answer."""
    words: int = 32
    """Stop texts, forbidden and required words …"""
    word_characters: int = 200
    """… and characters of each."""
    queue: int = 256
    """Requests to one run that wait; more are sent away with 503."""
    crowd: int = 80
    """Requests that a run takes on while more come than it can answer, or as many …"""
    patience: float = 0.15
    """… as it answers in so many seconds."""
    deadline: float = 60.0
    """Seconds from the arrival of a request to its answer."""
    linger: float = 0.002
    """Seconds a text waits for company when there is nothing else to do, and again when some comes."""
    budget: int = 3_000
    """Tokens that are answered together …"""
    rows: int = 256
    """… and texts."""
    per_minute: int | None = None
    """Requests a minute of one client (a key, or an address where there are no keys)."""
    drain: float = 60.0
    """Seconds that accepted requests are given when the server is asked to stop."""
