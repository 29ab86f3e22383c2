"""Ports for one test, disjoint from those of other tests of this machine that have hosts, too."""
import os
import socket

# Below the ports that the system gives to clients (32,768 and above), and apart from those of links alone (below 20,500).
# Three hosts, spaced so that no two links share ports: link i of a file, counted through all hosts, has 65 from 65 * i after its host's
# own one on. With a spacing of 70 the first link of the third host overlapped with the second link of the second.
APART = 200
FIRST, WIDTH, BLOCKS = 20500, 3 * APART, 20
_held = []


def take():
    """The first port of a block reserved for this process until it ends, by an abstract socket name that is released with it."""
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
