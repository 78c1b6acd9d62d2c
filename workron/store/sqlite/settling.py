"""What follows from an end, step by step; every verb that ends or frees a job goes through here.

The steps hand jobs on through the scratch sets of `sql/scratch.sql`: claims that are over stand in
`fallen`, jobs that may go on in `moving`, ends in `ended`, who hears of them in `told`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workron.store.sqlite.transaction import Transaction


def end_claims(tx: Transaction) -> None:
    """Work off `fallen`: record the attempts, end the jobs or let them go on."""
    tx.run("end_claims.obey")
    over = tx.run("end_claims.record")
    tx.run("end_claims.leave_running")
    if tx.run("end_claims.end") < over:
        tx.run("end_claims.go_on")
        tx.run("end_claims.miss")
    finish(tx)


def finish(tx: Transaction) -> None:
    """Work off `ended`, told to its direct downstreams, and `moving`."""
    record(tx)
    tell(tx)
    conclude(tx)


def place(tx: Transaction) -> None:
    """Work off `moving`: each goes where it may be; who belongs to a cancelled root, to `ended`."""
    if tx.run("place.judge"):
        for step in ("cancel", "hold", "defer", "queue"):
            tx.run(f"place.{step}")


def record(tx: Transaction) -> None:
    """Write down what stands in `ended`, and leave it there."""
    if tx.run("settle_ends.record"):
        tx.run("settle_ends.drop_deadlines")
        tx.run("settle_ends.drop_unbound")
        tx.run("settle_ends.drop_missing")


def tell(tx: Transaction) -> None:
    """Work off `ended` into `told`."""
    tx.run("settle_ends.tell")
    tx.run("clear.ended")


def conclude(tx: Transaction) -> None:
    """Work off `told` and `moving`; what ends by that is left to the maintainer."""
    if tx.run("settle_ends.hear"):
        tx.run("settle_ends.free")
        tx.run("settle_ends.decide")
        tx.run("settle_ends.leave_waiting")
    place(tx)
    record(tx)
    postpone(tx)


def postpone(tx: Transaction) -> None:
    """Leave the telling of what stands in `ended` to the maintainer."""
    tx.run("settle_ends.postpone")
