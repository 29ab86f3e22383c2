"""Clients and holders of a space in different containers, which share only the folder of the space, and under the limits of a container.
Usage: test_containers.py FOLDER_OF_PROGRAMS PIPELINES_FOLDER. Namespaces that can't be made here are skipped, which is reported."""
import os
import resource
import signal
import socket
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from space_world import CAROUSEL, CLIENT, Spaces, wait_for  # noqa: E402

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
import seccomp  # noqa: E402
from processes import skip  # noqa: E402

# A namespace of each kind except time, with its own /proc and /dev/shm.
UNSHARE = ["unshare", "--map-root-user", "--mount", "--pid", "--ipc", "--uts", "--net", "--fork", "--kill-child", "--mount-proc"]
CONTAINER = [*UNSHARE, "sh", "-c", 'mount -t tmpfs tmpfs /dev/shm && exec "$@"', "sh"]
OTHER_CLOCK = [*UNSHARE, "--time", "--monotonic", "100"]
SYSTEM_CALLS = {"pidfd_getfd": seccomp.PIDFD_GETFD, "pidfd_open": seccomp.PIDFD_OPEN, "ptrace": seccomp.PTRACE,
                "process_vm_readv": seccomp.PROCESS_VM_READV}


def starts(*words):
    return subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0


def can_watch_siblings():
    """SO_PEERPIDFD: Linux 6.5."""
    one, two = socket.socketpair(socket.AF_UNIX)
    with one, two:
        try:
            os.close(one.getsockopt(socket.SOL_SOCKET, 77))
            return True
        except OSError:
            return False


class Containers(Spaces):
    def setUp(self):
        super().setUp()
        if not starts(*CONTAINER):
            self.skipTest("no namespaces can be made here (unshare)")
        if not can_watch_siblings():
            self.skipTest("Linux 6.5 or newer is needed to watch processes of other pid namespaces")

    def lines(self, *words):
        """A process, and the first line that it prints."""
        p = self.start(*words)
        return p, p.stdout.readline()

    def holds(self):
        """What clients hold, by any process's count: permits taken, blocks owned."""
        figures = {p["name"]: p["figures"] for p in self.spaces()["lab"]["primitives"]}
        return figures["turn"]["taken"], figures["frames"]["blocks"]

    def wait_for_states(self, states):
        """A client that has not reconnected is "dead" until then: its connection has ended."""
        wait_for("the connections", lambda: sorted(c["state"] for c in self.clients_of("lab").values()) == states, 10)

    def test_processes_of_any_container_share_a_space_and_are_recovered_after_their_death(self):
        for place in ([], CONTAINER):
            holder, line = self.lines(*place, CAROUSEL, "hold", "lab", "--size", "4M")
            self.assertTrue(line.startswith("holding"), line)
            inside, line_inside = self.lines(*CONTAINER, CLIENT, "lab")
            other, line_other = self.lines(*CONTAINER, CLIENT, "lab")
            self.assertEqual((line_inside, line_other), ("ready\n", "ready\n"))
            here = self.client("lab")
            self.assertEqual(self.holds(), (3, 3))
            self.goes_on(inside)
            self.kill(inside)   # its namespace ends with it
            wait_for("the recovery", lambda: self.holds() == (2, 2), 10)
            self.goes_on(other)
            self.kill(here)
            wait_for("the recovery", lambda: self.holds() == (1, 1), 10)
            self.goes_on(other)
            self.kill(other)
            wait_for("the recovery", lambda: self.holds() == (0, 0), 10)
            holder.send_signal(signal.SIGINT)
            self.kill(holder)
            wait_for("its end", lambda: "lab" not in self.spaces() or self.spaces()["lab"]["state"] != "held", 10)

    def test_a_holder_of_another_container_takes_over_and_fences_no_living_client(self):
        holder = self.hold("lab")
        here, late, inside = self.client("lab"), self.client("lab"), self.lines(*CONTAINER, CLIENT, "lab")[0]
        self.kill(holder)
        late.send_signal(signal.SIGSTOP)   # it can't reconnect: the next holder must not take it for dead
        holder, line = self.lines(*CONTAINER, CAROUSEL, "hold", "lab")
        self.assertTrue(line.startswith("took over"), line)
        for client in here, inside:
            self.goes_on(client)
        self.assertEqual(self.holds(), (3, 3))
        self.wait_for_states(["attached", "attached", "dead"])
        self.kill(here)   # known to this holder by its new connection
        wait_for("the recovery", lambda: self.holds() == (2, 2), 10)
        late.send_signal(signal.SIGCONT)
        self.goes_on(late)
        self.wait_for_states(["attached", "attached"])
        self.kill(late)
        wait_for("the recovery", lambda: self.holds() == (1, 1), 10)
        self.goes_on(inside)

    def test_a_client_of_another_clock_is_refused_with_the_reason(self):
        if not starts(*OTHER_CLOCK):
            self.skipTest("no time namespace can be made here (unshare --time)")
        self.hold("lab")
        client = self.start(*OTHER_CLOCK, CLIENT, "lab")
        text = client.communicate(timeout=30)[0]
        self.assertEqual(text.count("\n"), 1, text)
        self.assertIn("CLOCK_MONOTONIC is 100.", text)
        self.assertEqual(self.clients_of("lab"), {})


class Limits(Spaces):
    """These need no namespaces."""

    def start_limited(self, limit, *words):
        p = subprocess.Popen(words, env=self.environment, cwd=self.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, preexec_fn=limit)
        self.started.append(p)
        return p, p.stdout.readline()

    def test_a_client_under_a_container_s_limits_works_and_is_recovered(self):
        self.hold("lab")
        limits = [lambda call=call: seccomp.refuse(call) for call in SYSTEM_CALLS.values()]
        limits += [lambda: seccomp.refuse(*SYSTEM_CALLS.values()), lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))]
        clients = []
        for limit in limits:
            client, line = self.start_limited(limit, CLIENT, "lab")
            self.assertEqual(line, "ready\n")
            self.goes_on(client)
            clients.append(client)
            if len(clients) == 3:   # the semaphore has four permits
                for each in clients:
                    self.kill(each)
                clients = []
                wait_for("the recovery", lambda: self.clients_of("lab") == {}, 10)

    def test_a_holder_without_pidfd_open_fences_no_living_client(self):
        refused = lambda: seccomp.refuse(seccomp.PIDFD_OPEN, seccomp.PIDFD_GETFD)  # noqa: E731
        holder, line = self.start_limited(refused, CAROUSEL, "hold", "lab", "--size", "4M")
        self.assertTrue(line.startswith("holding"), line)
        client, late = self.start(CLIENT, "lab"), self.start(CLIENT, "lab")
        texts = client.stdout.readline(), late.stdout.readline()
        if not can_watch_siblings():
            self.assertIn("allow pidfd_open", texts[0])
            return
        self.assertEqual(texts, ("ready\n", "ready\n"))
        late.send_signal(signal.SIGSTOP)
        self.kill(holder)
        _, line = self.start_limited(refused, CAROUSEL, "hold", "lab")
        self.assertTrue(line.startswith("took over"), line)
        self.goes_on(client)
        self.assertEqual(len(self.clients_of("lab")), 2)
        late.send_signal(signal.SIGCONT)
        self.goes_on(late)


if __name__ == "__main__":
    result = unittest.main(argv=sys.argv[:1], verbosity=2, exit=False).result
    if result.wasSuccessful() and result.skipped:
        skip(result.skipped[0][1])
    sys.exit(0 if result.wasSuccessful() else 1)
