"""A server under load: beside offline answering, at half and at twice what it can do, and over many requests.

    python -m benchmarks.serving_speed [--run DIR --texts FILE] [--seconds 20] [--soak 20000]

Without ``--run`` a small Transformer learns dates for a minute first. Clients and server share the machine.
"""

import argparse
import asyncio
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import machine, results
from benchmarks.arena import say
from benchmarks.load import Seen, closed, opened

CLIENTS = 64
QUEUE = 64


@contextmanager
def server(run: Path) -> Iterator[tuple[int, str]]:
    """Its process and its address."""
    command = [sys.executable, "-m", "regard.apps", "serve", str(run), "--port", "0", "--queue", str(QUEUE)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        place = None
        for line in process.stderr:
            place = place or re.search(r"http://(\S+)", line)
            if "startup complete" in line:
                break
        assert place is not None, "the server did not start"
        try:
            yield process.pid, place[1]
        finally:
            process.send_signal(signal.SIGTERM)
            code = process.wait(120)
            say(f"the server ended with {code}")


def offline(run: Path, texts: list[str], settings: dict[str, Any]) -> float:
    """Texts a second without any HTTP, the best of three."""
    from regard.apps.session import load
    from regard.search.greedy import GreedySpec

    loaded = load(run)
    search = GreedySpec() if settings.get("greedy") else None
    best = 0.0
    for _ in range(3):
        begin = time.perf_counter()
        for _ in loaded.stream(texts, search, detail=False):
            pass
        best = max(best, len(texts) / (time.perf_counter() - begin))
    return best


def memory(process: int) -> dict[str, float]:
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    resident = int(re.search(r"VmRSS:\s+(\d+)", status)[1])  # type: ignore[index]
    return {"mb": round(resident / 1024, 1), "files": len(list(Path(f"/proc/{process}/fd").iterdir()))}


def measure(
    run: Path, texts: list[str], settings: dict[str, Any], seconds: float, soak: int
) -> dict[str, Any]:
    say("offline")
    bulk = offline(run, texts, settings)
    with server(run) as (process, place):

        def load(what: str, seen: Seen) -> Seen:
            say(f"{what}: {seen.summary()}")
            return seen

        asyncio.run(closed(place, texts, settings, CLIENTS, seconds=min(3.0, seconds)))
        full = load(f"{CLIENTS} clients", asyncio.run(closed(place, texts, settings, CLIENTS, seconds)))
        half = load("half", asyncio.run(opened(place, texts, settings, full.rate / 2, seconds)))
        most = load("70 %", asyncio.run(opened(place, texts, settings, full.rate * 0.7, seconds)))
        over = load("twice", asyncio.run(opened(place, texts, settings, full.rate * 2, seconds)))
        course = [memory(process)]
        for _ in range(10):
            seen = asyncio.run(closed(place, texts, settings, 16, count=max(1, soak // 10)))
            course.append(memory(process) | {"wrong": seen.wrong, "lost": seen.lost})
        say(f"soak: {course}")
    second_half = (course[-1]["mb"] - course[5]["mb"]) / (soak / 2 / 1000)
    rows = [
        ["offline", f"{bulk:,.0f}", "", ""],
        *(
            [name, f"{seen.rate:,.0f}", *_latencies(seen)]
            for name, seen in (
                (f"{CLIENTS} clients", full),
                ("half load", half),
                ("70 %", most),
                ("twice", over),
            )
        ),
    ]
    print(results.table(["", "texts/s", "median ms", "p99 ms"], rows), flush=True)
    print(f"of offline: {full.rate / bulk:.2f}; memory {second_half:+.2f} MB per 1,000 requests at the end")
    return {
        "settings": settings,
        "offline_texts_per_second": round(bulk, 1),
        "share_of_offline": round(full.rate / bulk, 3),
        "clients": {"clients": CLIENTS, **full.summary()},
        "half_load": half.summary(),
        "seventy_percent": most.summary(),
        "twice": {"queue": QUEUE, "of_saturation": round(over.rate / full.rate, 3), **over.summary()},
        "soak": {"requests": soak, "mb_per_1000_in_second_half": round(second_half, 3), "course": course},
    }


def _latencies(seen: Seen) -> list[str]:
    found = seen.summary()["latency_ms"] or {}
    return [f"{found.get(name, float('nan')):,.1f}" for name in ("median", "p99")]


def learned(folder: Path) -> tuple[Path, list[str]]:
    from regard.apps.training import train
    from regard.data.corpora.dates import dates

    train("transformer_tiny", "dates", folder / "run", minutes=1.0)
    return folder / "run", [written.source for written in dates("test", 2000)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--run", type=Path, help="a run folder; one is trained otherwise")
    parser.add_argument("--texts", type=Path, help="lines to ask")
    parser.add_argument("--greedy", action="store_true", help="instead of the run's own search")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each measurement")
    parser.add_argument("--soak", type=int, default=20_000, help="requests")
    parser.add_argument("--name", default="serving_speed", help="of the file of results")
    given = parser.parse_args()
    settings = {"detail": False, **({"greedy": True} if given.greedy else {})}
    with tempfile.TemporaryDirectory() as folder:
        if given.run is None:
            run, texts = learned(Path(folder))
        else:
            run, texts = given.run, given.texts.read_text(encoding="utf-8").splitlines()
        found = measure(run, [text for text in texts if text.strip()], settings, given.seconds, given.soak)
    print(results.write(given.name, {"machine": machine.facts(), **found}))


if __name__ == "__main__":
    main()
