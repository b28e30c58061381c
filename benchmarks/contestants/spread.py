"""Some of many, for who is asked one by one."""


def some_of(lines: list[str], most: int) -> list[str]:
    """At equal distances."""
    return lines[:: max(1, len(lines) // most)][:most]
