"""The socket of a worker acknowledges at once what Spark writes."""

from __future__ import annotations

import socket

import pytest

from weir.spark.worker_socket import acknowledge_at_once

QUICK = getattr(socket, "TCP_QUICKACK", None)


@pytest.mark.skipif(QUICK is None, reason="only Linux lets a process say when it acknowledges")
def test_every_open_tcp_socket_acknowledges_at_once_and_stays_usable() -> None:
    assert QUICK is not None
    unix, other_unix = socket.socketpair()
    with (
        unix,
        other_unix,
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
        server.accept()[0] as worker,
    ):
        for end in (client, worker):
            end.setsockopt(socket.IPPROTO_TCP, QUICK, 0)
        acknowledge_at_once()
        assert [end.getsockopt(socket.IPPROTO_TCP, QUICK) for end in (client, worker)] == [1, 1]
        for sender, receiver in ((client, worker), (unix, other_unix)):
            sender.sendall(b"rows")
            assert receiver.recv(4) == b"rows"
