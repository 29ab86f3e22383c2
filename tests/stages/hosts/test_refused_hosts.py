"""What prevents a pipeline over hosts from starting, in one sentence each. Usage: test_refused_hosts.py FOLDER_OF_PROGRAMS"""
import hmac
import json
import os
import shutil
import socket
import struct
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from host_world import HOST, PORT, SINK, SOURCE, World  # noqa: E402

PROGRAMS = sys.argv[1]
SIZE = 1 << 12
MESH = """[pipeline]
size = [64, 48]

[[stage]]
name = "geometry"
run = "carousel-geometry"
mesh = "one.gltf"

[[stage]]
name = "vertex"
run = "carousel-vertex"
inputs = ["geometry"]

[[stage]]
name = "fragment"
run = "carousel-fragment"
inputs = ["vertex"]

[[stage]]
name = "display"
run = "carousel-display"
inputs = ["fragment"]
host = "b"

"""
GLTF = {"asset": {"version": "2.0"}, "scene": 0, "scenes": [{"nodes": [0]}], "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}],
        "accessors": [{"bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3", "min": [0, 0, 0], "max": [1, 1, 0]}],
        "bufferViews": [{"buffer": 0, "byteLength": 36}], "buffers": [{"uri": "one.bin", "byteLength": 36}]}


class CoordinatorPeer:
    """A coordinator's side of the connection between supervisors, up to the session key, with the token."""
    MAGIC = b"CRSLHST3"

    def __init__(self, token):
        self.socket = socket.create_connection(("127.0.0.1", PORT), 10)
        self.sent = 0
        own = os.urandom(32)
        self.socket.sendall(self.MAGIC + own)
        answer = b""
        while len(answer) < 72:
            answer += self.socket.recv(72 - len(answer))
        self.seal = lambda key, *parts: hmac.digest(key, b"".join(parts), "sha256")
        nonces = own + answer[8:40]
        self.key = self.seal(token, b"key ", self.MAGIC, nonces)
        self.socket.sendall(self.seal(token, b"near", self.MAGIC, nonces))

    def send(self, text):
        number = struct.pack("<Q", self.sent)
        self.sent += 1
        self.socket.sendall(struct.pack("<I", len(text)) + text + self.seal(self.key, b"n", number, text))

    def is_closed_by_the_host(self):
        self.socket.settimeout(10)
        try:
            return self.socket.recv(1 << 16) == b""
        except ConnectionResetError:
            return True


class Refused(unittest.TestCase):
    def setUp(self):
        self.world = World(PROGRAMS)
        self.addCleanup(self.world.end)

    def file(self, address="127.0.0.1"):
        return self.world.write("chain.toml", SOURCE.format(bytes=SIZE) + SINK.format(name="sink", of="source", bytes=SIZE, more='host = "b"')
                                + HOST.format(name="b", address=address, port=PORT, launcher="none", more=""))

    def token(self, mode=0o600, folder=""):
        path = self.world.write(os.path.join(folder, "chain.token"), "a" * 64)
        os.chmod(path, mode)
        return path

    def refused(self, host, code, words):
        self.assertEqual(host.start().wait(20), code, host.text())
        self.assertRegex(host.text(), words)
        # One sentence: the error is in one line of the log, once.
        self.assertEqual(len([line for line in host.text().splitlines() if line.strip()]), 1, host.text())

    def test_a_build_without_links_names_what_it_needs(self):
        folder = os.path.join(self.world.folder, "bin")
        os.makedirs(folder)
        for program in ("carousel", "carousel-test-bytes"):
            shutil.copy(os.path.join(PROGRAMS, program), folder)
        self.world.carousel = os.path.join(folder, "carousel")
        self.refused(self.world.coordinator(self.file(), "--frames", "5"), 2,
                     r'run = "carousel-send": no such program in .*bin or in PATH. Links to other hosts need UCX: run '
                     "apt-get install libucx-dev libssl-dev and build again")

    def test_a_second_supervisor_on_one_port_is_refused_and_the_first_one_continues(self):
        file = self.file()
        self.token()
        first = self.world.remote(file, "b", "--frames", "20")
        first.start()
        first.expect_log("waits for `carousel run`")
        other = self.world.remote(file, "b", "--frames", "20")
        other.log += "2"
        other.environment["XDG_RUNTIME_DIR"] = os.path.join(self.world.folder, "elsewhere")   # otherwise the run itself exists twice
        os.makedirs(other.environment["XDG_RUNTIME_DIR"])
        other.begin = 0
        self.refused(other, 2, f"host b: cannot listen on port {PORT} of 127.0.0.1: .*[Aa]ddress already in use.*; choose another port with port = N in "
                     r"\[hosts.b\]")
        self.assertIsNone(first.process.poll())
        coordinator = self.world.coordinator(file, "--frames", "20").start()
        self.assertEqual([coordinator.wait(), first.wait()], [0, 0], coordinator.text() + first.text())
        self.assertEqual(first.report()["frames"], 20)

    def test_a_host_that_gives_no_answer_is_waited_for_in_a_sentence_and_joins_when_it_is_there(self):
        file = self.file()
        self.token()
        with socket.socket() as silent:
            silent.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            silent.bind(("127.0.0.1", PORT))
            silent.listen()
            coordinator = self.world.coordinator(file, "--frames", "20").start()
            coordinator.expect_log(rf"waiting for host b \(127\.0\.0\.1 port {PORT}\): no answer yet\. Start it there: carousel host --file .* --as b ")
        coordinator.expect_log(rf"waiting for host b \(127\.0\.0\.1 port {PORT}\): Connection refused\. ")
        remote = self.world.remote(file, "b", "--frames", "20").start()
        self.assertEqual([coordinator.wait(), remote.wait()], [0, 0], coordinator.text() + remote.text())
        self.assertEqual(remote.report()["frames"], 20)

    def test_an_unreachable_host_is_reported_and_ctrl_c_ends_the_wait(self):
        coordinator = self.world.coordinator(self.file(address="10.255.254.253"), "--frames", "20").start()
        coordinator.expect_log(rf"waiting for host b \(10\.255\.254\.253 port {PORT}\): [A-Za-z].*\. Start it there: ")
        coordinator.interrupt()
        self.assertEqual(coordinator.wait(), 130, coordinator.text())

    def test_another_program_at_the_hosts_port_is_reported_and_ends_no_process(self):
        file = self.file()
        self.token()
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind(("127.0.0.1", PORT))
            other.listen()
            other.settimeout(20)
            coordinator = self.world.coordinator(file, "--frames", "20").start()
            for _ in range(4):   # it is retried; the sentence comes half a second after the start
                with other.accept()[0] as c:
                    c.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" + bytes(200))
                    time.sleep(0.1)
            coordinator.expect_log("waiting for host b .*: the process there is not a `carousel host` of this version: .*another program may use that port\\. ")
        remote = self.world.remote(file, "b", "--frames", "20").start()
        self.assertEqual([coordinator.wait(), remote.wait()], [0, 0], coordinator.text() + remote.text())

    def test_a_deeply_nested_message_costs_the_coordinator_only_its_connection(self):
        file = self.file()
        self.token()
        remote = self.world.remote(file, "b", "--frames", "20").start()
        remote.expect_log("waits for `carousel run`")
        peer = CoordinatorPeer(b"a" * 64)
        self.addCleanup(peer.socket.close)
        peer.send(b'{"ping": ' + b"[" * 60_000 + b"]" * 60_000 + b"}")
        self.assertTrue(peer.is_closed_by_the_host())
        self.assertIsNone(remote.process.poll(), remote.text())
        coordinator = self.world.coordinator(file, "--frames", "20").start()
        self.assertEqual([coordinator.wait(), remote.wait()], [0, 0], coordinator.text() + remote.text())

    def test_an_address_of_another_machine_is_refused(self):
        file = self.file(address="10.255.254.253")
        self.token()
        self.refused(self.world.remote(file, "b"), 2, "host b: 10.255.254.253 is not an address of this machine: run `carousel host --as b` on the machine that has it")

    def test_a_token_that_others_may_read_is_refused_on_both_hosts(self):
        file = self.file()
        path = self.token(0o644)
        for host in (self.world.coordinator(file), self.world.remote(file, "b")):
            self.refused(host, 2, f"the token of this pipeline's hosts, {path}, has mode 0644: other users can read it. Run `chmod 600 ")

    def test_a_missing_token_is_requested_on_the_remote_host(self):
        self.refused(self.world.remote(self.file(), "b"), 2, "the token of this pipeline's hosts, .*chain.token: No such file or directory.*copy it over ssh")

    def test_a_token_that_is_a_link_to_another_file_is_refused(self):
        file = self.file()
        elsewhere = self.token(folder="..")
        self.addCleanup(os.unlink, elsewhere)
        os.symlink(elsewhere, os.path.join(self.world.folder, "chain.token"))
        self.refused(self.world.coordinator(file), 2, "the token of this pipeline's hosts, .*chain.token: ")

    def test_a_buffer_of_a_mesh_that_differs_between_the_hosts_is_named(self):
        for folder, last in (("here", 0), ("there", 1)):
            os.makedirs(os.path.join(self.world.folder, folder))
            self.world.write(f"{folder}/one.gltf", json.dumps(GLTF))
            with open(os.path.join(self.world.folder, folder, "one.bin"), "wb") as f:
                f.write(struct.pack("<9f", 0, 0, 0, 1, 0, 0, 0, 1, last))
            self.world.write(f"{folder}/chain.toml", MESH + HOST.format(name="b", address="127.0.0.1", port=PORT, launcher="none", more=""))
            self.token(folder=folder)
        remote = self.world.remote(os.path.join(self.world.folder, "there/chain.toml"), "b", "--frames", "5").start()
        remote.expect_log("waits for `carousel run`")
        coordinator = self.world.coordinator(os.path.join(self.world.folder, "here/chain.toml"), "--frames", "5")
        self.assertEqual(coordinator.start().wait(), 2)
        self.assertRegex(coordinator.text(), r"host b: .*stage geometry: settings.mesh.content.one.bin.hash is \"\w+\" there and \"\w+\" here")
        remote.expect_log("the coordinator's plan differs: stage geometry: settings.mesh.content.one.bin.hash")
        shutil.copy(os.path.join(self.world.folder, "there/one.bin"), os.path.join(self.world.folder, "here/one.bin"))
        self.assertEqual([coordinator.start().wait(), remote.wait()], [0, 0], coordinator.text() + remote.text())


if __name__ == "__main__":
    sys.argv.pop(1)
    unittest.main(verbosity=2)
