"""What a server counts, as Prometheus reads it."""

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)

Counted = TypeVar("Counted", Counter, Histogram)


class Each(dict[tuple[str, ...], Counted], Generic[Counted]):
    """One count for each of the labels. They are few, and to look one up by its labels in the library takes
    longer than to count."""

    def __init__(self, family: Counted) -> None:
        super().__init__()
        self._family: Counted = family

    def __missing__(self, labels: tuple[str, ...]) -> Counted:
        found: Counted = self._family.labels(*labels)
        self[labels] = found
        return found


class Metrics:
    """One set for each application; nothing is shared between two in one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        here = self.registry
        self.requests = Each(
            Counter("regard_requests", "Requests answered.", ("route", "status"), registry=here)
        )
        self.running = Gauge("regard_requests_running", "Requests being answered.", registry=here)
        self.seconds = Each(
            Histogram(
                "regard_request_seconds",
                "From arrival to the last byte.",
                ("route",),
                buckets=_SECONDS,
                registry=here,
            )
        )
        self.first_piece = Histogram(
            "regard_first_piece_seconds",
            "From arrival to the first piece of a stream.",
            buckets=_SECONDS,
            registry=here,
        )
        self.batch_texts = Each(
            Histogram(
                "regard_batch_texts", "Texts answered together.", ("model",), buckets=_COUNTS, registry=here
            )
        )
        self.batch_seconds = Each(
            Histogram("regard_batch_seconds", "What that took.", ("model",), buckets=_SECONDS, registry=here)
        )
        self.read = Each(
            Counter(
                "regard_characters_read", "Characters of texts that were taken on.", ("model",), registry=here
            )
        )
        self.reloads = Each(
            Counter("regard_reloads", "Runs whose folder changed.", ("model", "outcome"), registry=here)
        )

    def gauge(self, name: str, meaning: str, values: Callable[[], Iterable[tuple[str, float]]]) -> None:
        """A value for each model, taken when somebody looks."""
        self.registry.register(_Looked(name, meaning, values))

    def page(self) -> bytes:
        return generate_latest(self.registry)


class _Looked(Collector):
    def __init__(self, name: str, meaning: str, values: Callable[[], Iterable[tuple[str, float]]]) -> None:
        self.name, self.meaning, self.values = name, meaning, values

    def collect(self) -> Iterator[GaugeMetricFamily]:
        family = GaugeMetricFamily(self.name, self.meaning, labels=["model"])
        for model, value in self.values():
            family.add_metric([model], value)
        yield family
