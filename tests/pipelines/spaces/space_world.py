"""The common parts of the tests of spaces: their clients, and the ways to end them."""
import json
import os
import signal
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from live import CAROUSEL, PROGRAMS, Live, is_alive, wait_for  # noqa: E402

NESTED = "[" * 60_000 + "]" * 60_000   # 120 KB
CLIENT = os.path.join(PROGRAMS, "carousel-space-client")


class Spaces(Live):
    def setUp(self):
        super().setUp()
        self.started = []
        self.addCleanup(self.end_started)

    def end_started(self):
        for p in self.started:
            if p.poll() is None:
                p.kill()
            p.wait(20)
            for stream in (p.stdin, p.stdout):
                if stream:
                    stream.close()

    def start(self, *words):
        p = subprocess.Popen(words, env=self.environment, cwd=self.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True)
        self.started.append(p)
        return p

    def hold(self, name, begins="holding"):
        p = self.start(CAROUSEL, "hold", name, "--size", "4M")
        self.assertTrue((line := p.stdout.readline()).startswith(begins), line)
        return p

    def client(self, name):
        p = self.start(CLIENT, name)
        self.assertEqual(p.stdout.readline(), "ready\n")
        return p

    def goes_on(self, client):
        """It gives its permit back and takes it again."""
        client.stdin.write("\n")
        client.stdin.flush()
        self.assertEqual(client.stdout.readline(), "again\n")

    def spaces(self, *words):
        output = self.carousel("ps", "--json", *words).stdout
        return {s["name"]: s for s in json.loads(output).get("spaces", [])}

    def clients_of(self, name):
        return {c["pid"]: c for c in self.spaces("-p", name).get(name, {}).get("clients", [])}

    @staticmethod
    def reply_to(path, text):
        """What the listener at `path` answers to one message; b"" if it closes the connection or ends."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.settimeout(10)
            s.connect(path)
            try:
                s.send(text.encode())
                return s.recv(1 << 18)
            except (BrokenPipeError, ConnectionResetError):
                return b""

    @staticmethod
    def kill(p):
        p.send_signal(signal.SIGKILL)
        p.wait(20)


__all__ = ["CAROUSEL", "PROGRAMS", "CLIENT", "NESTED", "Spaces", "is_alive", "wait_for"]
