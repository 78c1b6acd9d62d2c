"""What waits to be stored, and who waits for it."""

from workron_worker.executor import Acknowledge
from workron_worker.output_stream import StreamBuffer, tee_output


def _inbox(limit: int = 100, full: int = 10) -> tuple[StreamBuffer, list[int], list[str]]:
    rung = list[str]()
    return (
        StreamBuffer(limit, chunk_bytes=full, wake=lambda: rung.append("ring")),
        list[int](),
        rung,
    )


def test_piece_is_dealt_with_when_who_took_it_says_so() -> None:
    inbox, dealt_with, _ = _inbox()
    inbox.add(b"abcdefgh", dealt_with.append)
    inbox.add(b"ijkl", dealt_with.append)
    data, settle = inbox.take_chunk()
    assert (data, inbox.size, dealt_with) == (b"abcdefghij", 2, [])
    settle()
    assert dealt_with == [10]


def test_nobody_waits_any_more_once_there_is_no_room() -> None:
    inbox, dealt_with, _ = _inbox(limit=5)
    inbox.add(b"abc", dealt_with.append)
    assert dealt_with == []
    inbox.add(b"defg", dealt_with.append)
    assert sum(dealt_with) == 7
    inbox.add(b"hi", dealt_with.append)
    data, settle = inbox.take_chunk()
    settle()
    assert (data, sum(dealt_with), inbox.size) == (b"abcde", 9, 0)


def test_what_was_taken_is_not_paid_for_twice() -> None:
    inbox, dealt_with, _ = _inbox(limit=5)
    inbox.add(b"abc", dealt_with.append)
    _, settle = inbox.take_chunk()
    inbox.add(b"defg", dealt_with.append)
    settle()
    inbox.close()
    assert sum(dealt_with) == 7


def test_closed_inbox_lets_go_of_what_is_there_and_of_what_comes() -> None:
    inbox, dealt_with, _ = _inbox()
    inbox.add(b"abc", dealt_with.append)
    inbox.close()
    inbox.add(b"de", dealt_with.append)
    assert (sum(dealt_with), inbox.size) == (5, 0)


def test_bell_rings_for_the_first_bytes_and_for_a_full_piece_alone() -> None:
    inbox, dealt_with, rung = _inbox()
    for data, rings in ((b"a", 1), (b"b", 1), (b"c" * 7, 1), (b"d", 2), (b"e", 2)):
        inbox.add(data, dealt_with.append)
        assert len(rung) == rings


def test_many_small_pieces_take_no_more_memory_than_a_large_one() -> None:
    inbox, dealt_with, _ = _inbox(limit=10**6, full=10**5)
    for _ in range(10**5):
        inbox.add(b"x", dealt_with.append)
    data, settle = inbox.take_chunk()
    settle()
    assert (len(data), dealt_with) == (10**5, [10**5])


def test_command_that_two_hear_waits_for_the_slower() -> None:
    given, dealt_with = list[Acknowledge](), list[int]()

    def ear(_: bytes, done: Acknowledge) -> None:
        given.append(done)

    tee_output(ear, ear)(b"abc", dealt_with.append)
    quick, slow = given
    quick(3)
    assert dealt_with == []
    slow(1)
    slow(2)
    assert dealt_with == [1, 2]
