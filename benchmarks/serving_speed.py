"""A server under load: in turns with offline answering, at half and at twice what it can do, and over many
requests.

    python -m benchmarks.serving_speed [--run DIR --texts FILE] [--path /translate]
                                       [--seconds 20] [--soak 20000]

Without ``--run`` a small Transformer learns dates for a minute first. Clients and server share the machine;
what each of them takes of the processor is told: where others compute as well, it says more than the clock.
Every answer is compared with the one given offline.
"""

import argparse
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import machine, results
from benchmarks.arena import say
from benchmarks.load import Question, Seen, closed, opened, questions

CLIENTS = 64
LANGUAGES = ("xa", "xb")
"""Whatever the run translates: nobody looks at the names."""
TURNS = 5
"""Of answering offline and over HTTP: what the machine is in the mood for shall hit both."""
_PASSES = 2
"""Over all texts in a turn."""
_UNTIL_IT_KNOWS = 8
"""Passes until an engine has tried every size of batches."""


class Bulk(NamedTuple):
    rate: float
    """Texts a second."""
    processor_ms: float
    """Of each."""


class Turn(NamedTuple):
    """Offline, and right after it over HTTP."""

    offline: Bulk
    clients: Seen
    processor_ms: float
    """Of a request."""

    @property
    def share(self) -> float:
        return self.clients.rate / self.offline.rate


@contextmanager
def server(run: Path) -> Iterator[tuple[int, str]]:
    """Its process and its address."""
    command = [sys.executable, "-m", "regard.apps", "serve", str(run), "--port", "0"]
    command += ["--languages", ":".join(LANGUAGES)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        place = None
        for line in process.stderr:
            place = place or re.search(r"http://(\S+)", line)
            if "startup complete" in line:
                break
        assert place is not None, "the server did not start"
        _wait_for(place[1])
        try:
            yield process.pid, place[1]
        finally:
            process.send_signal(signal.SIGTERM)
            code = process.wait(120)
            say(f"the server ended with {code}")


def _wait_for(place: str, seconds: float = 10.0) -> None:
    """It says that it has started a moment before it listens."""
    host, _, port = place.partition(":")
    end = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection((host, int(port))).close()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
        else:
            return


class Offline:
    """The same texts without any HTTP."""

    def __init__(self, run: Path, texts: list[str], settings: dict[str, Any]) -> None:
        from regard.apps.session import load
        from regard.search.greedy import GreedySpec

        self._run, self._texts = load(run), texts
        self._search = GreedySpec() if settings.get("greedy") else None
        self.answers = self._all()
        for _ in range(_UNTIL_IT_KNOWS):
            self._all()

    def turn(self) -> Bulk:
        begin, used = time.perf_counter(), time.process_time()
        for _ in range(_PASSES):
            self._all()
        texts = _PASSES * len(self._texts)
        used = time.process_time() - used
        return Bulk(texts / (time.perf_counter() - begin), 1000 * used / texts)

    def _all(self) -> list[str]:
        return [answer.text for answer in self._run.stream(self._texts, self._search, detail="text")]


def asked_of(path: str, texts: list[str], answers: list[str], settings: dict[str, Any]) -> list[Question]:
    if path == "/translate":
        source, target = LANGUAGES
        return questions(path, [{"q": text, "source": source, "target": target} for text in texts], answers)
    return questions(path, [{"text": text, **settings} for text in texts], answers)


def processor_seconds(process: int) -> float:
    """What all of its threads have used so far."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(process: int) -> dict[str, float]:
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    resident = int(re.search(r"VmRSS:\s+(\d+)", status)[1])  # type: ignore[index]
    return {"mb": round(resident / 1024, 1), "files": len(list(Path(f"/proc/{process}/fd").iterdir()))}


def measure(
    run: Path, texts: list[str], settings: dict[str, Any], seconds: float, soak: int, path: str = "/v1/run"
) -> dict[str, Any]:
    say("offline")
    offline = Offline(run, texts, settings)
    asked = asked_of(path, texts, offline.answers, settings)
    with server(run) as (process, place):
        used = dict[str, float]()

        def load(what: str, ask: Callable[[], Seen]) -> Seen:
            before = processor_seconds(process)
            seen = ask()
            used[what] = 1000 * (processor_seconds(process) - before) / max(1, seen.requests)
            say(f"{what}: {seen.summary()}, {used[what]:.3f} ms of processor a request")
            return seen

        closed(place, asked, CLIENTS, seconds=min(3.0, seconds))
        turns = [
            Turn(
                offline.turn(),
                load("clients", lambda: closed(place, asked, CLIENTS, seconds)),
                used["clients"],
            )
            for _ in range(TURNS)
        ]
        shares = sorted(turn.share for turn in turns)
        bulk, full, used["clients"] = sorted(turns, key=lambda turn: turn.share)[TURNS // 2]
        say(f"of offline, in turns: {', '.join(f'{share:.2f}' for share in shares)}")
        half = load("half", lambda: opened(place, asked, full.rate / 2, seconds))
        most = load("70 %", lambda: opened(place, asked, full.rate * 0.7, seconds))
        over = load("twice", lambda: opened(place, asked, full.rate * 2, seconds))
        course = [memory(process)]
        for _ in range(10):
            seen = closed(place, asked, 16, count=max(1, soak // 10))
            course.append(memory(process) | {"wrong": seen.wrong, "lost": seen.lost})
        say(f"soak: {course}")
    second_half = (course[-1]["mb"] - course[5]["mb"]) / (soak / 2 / 1000)
    rows = [
        ["offline", f"{bulk.rate:,.0f}", "", ""],
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
    print(
        f"of offline: {full.rate / bulk.rate:.2f} ({shares[0]:.2f} to {shares[-1]:.2f}); "
        f"processor: {bulk.processor_ms:.2f} ms a text offline, {used['clients']:.2f} a request, "
        f"{1000 * full.generator / max(1, full.requests):.2f} its client; "
        f"asked for twice as much: {over.rate / full.rate:.2f} of that is answered, "
        f"p99 {_p99(over) / _p99(full):.2f} times as long, {len(over.refused)} sent away; "
        f"memory {second_half:+.2f} MB per 1,000 requests at the end"
    )
    return {
        "path": path,
        "settings": settings,
        "offline_texts_per_second": round(bulk.rate, 1),
        "share_of_offline": round(full.rate / bulk.rate, 3),
        "shares_in_turns": [round(share, 3) for share in shares],
        "offline_processor_ms_per_text": round(bulk.processor_ms, 3),
        "server_processor_ms_per_request": {what: round(value, 3) for what, value in used.items()},
        "clients": {"clients": CLIENTS, **full.summary()},
        "half_load": half.summary(),
        "seventy_percent": most.summary(),
        "twice": {
            "of_saturation": round(over.rate / full.rate, 3),
            "p99_of_saturated": round(_p99(over) / _p99(full), 2),
            **over.summary(),
        },
        "soak": {"requests": soak, "mb_per_1000_in_second_half": round(second_half, 3), "course": course},
    }


def _p99(seen: Seen) -> float:
    return float((seen.summary()["latency_ms"] or {}).get("p99", float("nan")))


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
    parser.add_argument("--path", default="/v1/run", choices=("/v1/run", "/translate"), help="what is asked")
    parser.add_argument("--greedy", action="store_true", help="instead of the run's own search")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each measurement")
    parser.add_argument("--soak", type=int, default=20_000, help="requests")
    parser.add_argument("--name", default="serving_speed", help="of the file of results")
    given = parser.parse_args()
    if given.greedy and given.path == "/translate":
        parser.error("--greedy: /translate takes no search")
    settings = {"detail": False, **({"greedy": True} if given.greedy else {})}
    facts = machine.facts()  # an engine may have changed the number of threads afterwards
    with tempfile.TemporaryDirectory() as folder:
        if given.run is None:
            run, texts = learned(Path(folder))
        else:
            run, texts = given.run, given.texts.read_text(encoding="utf-8").splitlines()
        texts = [text for text in texts if text.strip()]
        found = measure(run, texts, settings, given.seconds, given.soak, given.path)
    print(results.write(given.name, {"machine": facts, **found}))


if __name__ == "__main__":
    main()
