"""What leaves together: a reply is one write, whatever pieces it is made of."""

import asyncio

from regard.apps.serving.wire import Gathering


class Transport:
    """Remembers what was done with it."""

    def __init__(self) -> None:
        self.done: list[bytes | str] = []

    def write(self, data: bytes) -> None:
        self.done.append(data)

    def close(self) -> None:
        self.done.append("closed")

    def is_closing(self) -> bool:
        return "closed" in self.done


def used(use) -> list[bytes | str]:
    transport = Transport()

    async def run() -> None:
        await use(Gathering(transport, asyncio.get_running_loop()))

    asyncio.run(run())
    return transport.done


def test_head_and_body_are_one_write() -> None:
    async def reply(wire: Gathering) -> None:
        for number in range(2):
            wire.write(b"head %d " % number)
            wire.write(b"body")
            await asyncio.sleep(0)

    assert used(reply) == [b"head 0 body", b"head 1 body"]


def test_what_was_written_before_the_end_leaves_before_it() -> None:
    async def last(wire: Gathering) -> None:
        wire.write(b"head ")
        wire.write(b"body")
        assert not wire.is_closing()
        wire.close()
        assert wire.is_closing()
        await asyncio.sleep(0)

    assert used(last) == [b"head body", "closed"]


def test_much_is_not_held_back() -> None:
    """Else a transport could not say that its reader is slow."""

    async def stream(wire: Gathering) -> None:
        for _ in range(5):
            wire.write(bytes(40_000))

    assert [len(part) for part in used(stream)] == [80_000, 80_000, 40_000]
