"""Ports of a test's own, beside other tests of this machine that have hosts, too."""
import os
import socket

# Below the ports that the system gives to clients (32,768 and above), and apart from those of links alone (below 20,500).
# Three hosts, so far apart that no link's ports are another one's: link i of a file, counted through all hosts, has 65 from
# 65 * i behind its host's own one on. At 70 the first link of the third host lay among those of the second link of the second.
APART = 200
FIRST, WIDTH, BLOCKS = 20500, 3 * APART, 20
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
