"""Output that is buffered until it is stored, and when it is acknowledged."""

from workron_worker.executor import Acknowledge
from workron_worker.output_stream import StreamBuffer, tee_output


class _BufferHarness:
    """A buffer, what it has acknowledged, and how often it has woken its reader."""

    def __init__(self, limit: int = 100, chunk_bytes: int = 10) -> None:
        self.acknowledged: list[int] = []
        self.wakes = 0
        self.buffer = StreamBuffer(limit, chunk_bytes=chunk_bytes, wake=self._wake)

    def add(self, data: bytes) -> None:
        self.buffer.add(data, self.acknowledged.append)

    def _wake(self) -> None:
        self.wakes += 1


def test_chunk_is_acknowledged_when_it_is_stored() -> None:
    harness = _BufferHarness()
    harness.add(b"abcdefgh")
    harness.add(b"ijkl")
    data, acknowledge = harness.buffer.take_chunk()
    assert (data, harness.buffer.size, harness.acknowledged) == (b"abcdefghij", 2, [])
    acknowledge()
    assert harness.acknowledged == [10]


def test_all_output_is_acknowledged_when_the_limit_is_reached() -> None:
    harness = _BufferHarness(limit=5)
    harness.add(b"abc")
    assert harness.acknowledged == []
    harness.add(b"defg")
    assert sum(harness.acknowledged) == 7
    harness.add(b"hi")
    data, acknowledge = harness.buffer.take_chunk()
    acknowledge()
    assert (data, sum(harness.acknowledged), harness.buffer.size) == (b"abcde", 9, 0)


def test_chunk_is_not_acknowledged_twice() -> None:
    harness = _BufferHarness(limit=5)
    harness.add(b"abc")
    _, acknowledge = harness.buffer.take_chunk()
    harness.add(b"defg")
    acknowledge()
    harness.buffer.close()
    assert sum(harness.acknowledged) == 7


def test_closed_buffer_acknowledges_all_output() -> None:
    harness = _BufferHarness()
    harness.add(b"abc")
    harness.buffer.close()
    harness.add(b"de")
    assert (sum(harness.acknowledged), harness.buffer.size) == (5, 0)


def test_buffer_wakes_for_the_first_bytes_and_for_a_full_chunk() -> None:
    harness = _BufferHarness()
    for data, wakes in ((b"a", 1), (b"b", 1), (b"c" * 7, 1), (b"d", 2), (b"e", 2)):
        harness.add(data)
        assert harness.wakes == wakes


def test_many_small_writes_become_one_chunk() -> None:
    harness = _BufferHarness(limit=10**6, chunk_bytes=10**5)
    for _ in range(10**5):
        harness.add(b"x")
    data, acknowledge = harness.buffer.take_chunk()
    acknowledge()
    assert (len(data), harness.acknowledged) == (10**5, [10**5])


def test_output_is_acknowledged_when_both_listeners_have_it() -> None:
    pending, acknowledged = list[Acknowledge](), list[int]()

    def listener(_: bytes, acknowledge: Acknowledge) -> None:
        pending.append(acknowledge)

    tee_output(listener, listener)(b"abc", acknowledged.append)
    fast, slow = pending
    fast(3)
    assert acknowledged == []
    slow(1)
    slow(2)
    assert acknowledged == [1, 2]
