"""Ports of a test's own, beside other tests of this machine that have hosts, too."""
import os
import socket

# Below the ports that the system gives to clients (32,768 and above), and apart from those of links alone (below 20,500).
FIRST, WIDTH, BLOCKS = 20500, 210, 55   # three hosts, 70 ports apart: links of one file are counted through, and take 65 each
_held = []


def take():
    """The first port of a block that nobody else has until this process ends: an abstract name says so, and goes with it."""
    for k in range(BLOCKS):
        block = (os.getpid() + k) % BLOCKS
        name = socket.socket(socket.AF_UNIX)
        try:
            name.bind(f"\0carousel-test-ports-{block}")
        except OSError:
            name.close()
            continue
        _held.append(name)
        return FIRST + WIDTH * block
    raise RuntimeError(f"all {BLOCKS} blocks of ports are taken by tests")
