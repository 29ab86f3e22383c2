"""Stages with a state on a host whose frames another one sends and keeps: the run continues from a checkpoint, each state with the
right frames, when that host or the memory of its rings is lost, when it is stopped, and when the sending host is lost.
Usage: test_durable_states.py FOLDER_OF_PROGRAMS [Durable.NAME]"""
import glob
import json
import os
import random
import signal
import socket
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from link_case import PORT, PROGRAMS, SEED, Case  # noqa: E402
from link_pair import END, RECEIVE, SEND, Host, check_report, ledger  # noqa: E402

EVERY = 4
FORMAT = json.dumps({"type": "test.number", "constants": {}, "planes": [{"name": "value", "element": "u64", "shape": [1]}]})
PIPELINE = '[pipeline]\nname = "{name}"\n{keys}\n'
NUMBERS = '[[stage]]\nname = "{name}"\nrun = "carousel-test-number"\nstate = true\n{more}\n'
CHECKPOINTS = "checkpoint_every = {}\n"


def middle_and_sink(of):
    return NUMBERS.format(name="middle", more=f'inputs = ["{of}"]') + NUMBERS.format(name="sink", more='inputs = ["middle"]\nsink = true')


class Durable(Case):
    """Two runs, by hand, whose stages all have a state. Only b has local sinks."""

    def started(self, frames, fps=40, sender_keys=""):
        """By default the run chooses how many frames the sender keeps."""
        pair = self.pair(frames, fps=fps)
        where = {"address": "127.0.0.1", "port": PORT, "token": "link.token", "in_flight": 16}
        send = (SEND + END).format(of="source", **where).replace("in_flight = 16\n", sender_keys) + 'release = "durable"\n'
        pair.a = Host(pair, "a", PIPELINE.format(name="a", keys=CHECKPOINTS.format(20)) + NUMBERS.format(name="source", more="") + send,
                      pair.a.options)
        receive = (RECEIVE + END).format(name="b", format=FORMAT, **where).replace('name = "b"\n', 'name = "b"\n' + CHECKPOINTS.format(EVERY), 1)
        pair.b = Host(pair, "b", receive + middle_and_sink("receive"))
        pair.b.start()
        pair.a.start()
        return pair

    def undisturbed(self, pair, frames):
        one = Host(pair, "one", PIPELINE.format(name="one", keys="") + NUMBERS.format(name="source", more="") + middle_and_sink("source"),
                   ["--frames", str(frames)])
        self.assertEqual(one.start().wait(60), 0, one.text())
        return ledger(os.path.join(pair.folder, "one-ledger-sink.bin"))

    def ends_whole(self, pair, frames, before=None):
        """`before`: what the sink had delivered before its run was lost."""
        try:
            codes = [pair.a.wait(60), pair.b.wait(30)]
        except AssertionError as late:
            codes = str(late)
        self.assertEqual(codes, [0, 0], pair.a.text()[-3000:] + pair.b.text()[-6000:])
        for host in (pair.a, pair.b):
            check_report(host, frames)
            self.assertEqual(host.report()["state_lost_at"], [], host.text())
        here = ledger(os.path.join(pair.folder, "b-ledger-sink.bin"))
        self.assertEqual({**(before or {}), **here}, self.undisturbed(pair, frames))

    def test_a_host_with_states_that_is_lost_continues_from_its_checkpoint(self):
        pair = self.started(160)
        self.delivered(pair.b, 40)   # more than rings and link hold
        before = pair.b.lose()
        pair.b.options = ["--first", "checkpoint"]
        pair.b.start()
        self.ends_whole(pair, 160, before)
        first = pair.b.report()["first"]
        self.assertGreater(first, 0)
        self.assertEqual(first % EVERY, 0)

    def test_a_stopped_host_continues_with_the_next_frame(self):
        pair = self.started(160)
        self.delivered(pair.b, 40)
        pair.b.process.send_signal(signal.SIGINT)
        self.assertEqual(pair.b.wait(30), 0, pair.b.text())
        end, before = pair.b.report()["frames"], ledger(os.path.join(pair.folder, "b-ledger-sink.bin"))
        pair.b.options = ["--first", "checkpoint"]
        pair.b.start()
        self.ends_whole(pair, 160, before)
        self.assertEqual(pair.b.report()["first"], end)

    def test_states_that_memory_does_not_prove_come_from_a_checkpoint_on_either_host(self):
        for victim, ring in (("b", "sink.state"), ("a", "source.state")):
            with self.subTest(host=victim):
                pair = self.started(160)
                self.delivered(pair.b, 40)
                host = getattr(pair, victim)
                self.forget(host, ring)
                self.ends_whole(pair, 160)
                self.assertRegex(host.text(), "the states continue from (the checkpoint|the beginning)")
                pair.end()

    def test_a_sender_that_keeps_too_few_frames_for_a_checkpoint_is_refused_with_the_number(self):
        pair = self.started(60, sender_keys=f"in_flight = {EVERY - 1}\n")
        for host in (pair.a, pair.b):
            self.expect_log(host, f"it keeps 3 frames, but the receiving run makes a checkpoint every {EVERY} frames.*set it to at least {EVERY}")
        pair.end()

    def test_kills_on_both_hosts_change_no_state(self):
        print(f"seed {SEED} (CAROUSEL_TEST_SEED)", file=sys.stderr)
        pair, dice = self.started(300, fps=60), random.Random(SEED)
        killed = 0
        while killed < 12 and pair.b.process.poll() is None:
            host, name = dice.choice([(pair.a, "source"), (pair.a, "send"), (pair.b, "receive"), (pair.b, "middle"), (pair.b, "sink")])
            killed += host.kill(name)
        self.ends_whole(pair, 300)

    def forget(self, host, ring):
        """Clears that ring's memory, so that nothing in it proves a state, and requests a rebuild."""
        maker = host.stage(ring.split(".", maxsplit=1)[0])["pid"]
        os.kill(maker, signal.SIGSTOP)   # it would find the damage first
        memory, = (fd for fd in glob.glob(f"/proc/{host.process.pid}/fd/*") if f"carousel ring {ring} " in os.readlink(fd))
        with open(memory, "r+b", buffering=0) as f:
            f.write(bytes(os.fstat(f.fileno()).st_size))
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as control:
            control.connect(os.path.join(host.pair.folder, "carousel", host.name, "control.sock"))
            control.settimeout(10)
            control.send(b'{"type": "rebuild"}')
            self.assertTrue(json.loads(control.recv(10_000))["ok"])


if __name__ == "__main__":
    del sys.argv[1]
    unittest.main(verbosity=2)
