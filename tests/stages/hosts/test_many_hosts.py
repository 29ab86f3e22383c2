"""Links between more than two runs, and hosts that are slow or stopped, on loopback. Usage:
test_many_hosts.py FOLDER_OF_PROGRAMS Everyday|Long"""
import os
import random
import signal
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from link_case import PORT, SEED, Case  # noqa: E402
from link_pair import END, RECEIVE, SEND, SINK, Host, check_report, format_of, wait_for  # noqa: E402

SECOND_PORT = PORT + 65


class Many(Case):
    def where(self, port=PORT):
        return {"address": "127.0.0.1", "port": port, "token": "link.token", "in_flight": 4}

    def third(self, pair, name, port):
        """A host at the end of a second link."""
        host = Host(pair, name, (RECEIVE + END).format(name=name, format=format_of(pair.size), **self.where(port))
                    + SINK.format(of="receive", bytes=pair.size, delay=0, more=""))
        self.addCleanup(host.end)
        return host

    def all_end_well(self, pair, frames, *hosts):
        codes = [host.wait(60) for host in hosts]
        self.assertEqual(codes, [0] * len(hosts), "".join(host.text()[-3000:] for host in hosts))
        one = pair.hash_on_one_host(frames)
        for host in hosts:
            check_report(host, frames)
            if host is not pair.a and any(s["name"] == "sink" for s in host.report()["stages"]):
                self.assertEqual(host.report()["image_hash"], one)


class Everyday(Many):
    def test_frames_come_through_a_chain_of_three_hosts_whatever_process_is_killed(self):
        print(f"seed {SEED} (CAROUSEL_TEST_SEED)", file=sys.stderr)
        dice = random.Random(SEED)
        pair = self.pair(480, fps=60)
        with open(pair.b.file, "w", encoding="utf-8") as f:
            f.write((RECEIVE + END).format(name="b", format=format_of(pair.size), **self.where())
                    + (SEND + END).format(of="receive", **self.where(SECOND_PORT)))
        c = self.third(pair, "c", SECOND_PORT)
        for host in (c, pair.b, pair.a):
            host.start()
        self.delivered(c, 5)
        victims = [(pair.a, "send"), (pair.b, "receive"), (pair.b, "send"), (c, "receive")]
        dice.shuffle(victims)
        for host, name in victims:
            time.sleep(dice.uniform(0.05, 0.3))
            wait_for(f"a process of {name}", lambda h=host, n=name: h.kill(n))
        wait_for("a supervisor of b that can be killed", pair.b.kill_supervisor)
        self.all_end_well(pair, 480, pair.a, pair.b, c)


class Long(Many):
    def test_of_two_concurrent_senders_one_is_accepted_and_the_other_gets_the_reason(self):
        frames = 200
        pair = self.pair(frames, fps=60)
        other = self.other_sender(pair)
        other.options = pair.a.options
        for host in (pair.b, pair.a, other):
            host.start()
        codes = {host: host.wait(60) for host in (pair.a, other)}
        self.assertEqual(sorted(codes.values()), [0, 1], pair.a.text() + other.text())
        winner, loser = sorted(codes, key=codes.get)
        self.assertRegex(loser.text(), r"is a new run, but the frames up to \d+ were received")
        self.assertEqual(pair.b.wait(30), 0, pair.b.text())
        check_report(pair.b, frames)
        check_report(winner, frames)

    def test_a_ring_goes_to_two_hosts_and_each_gets_all_of_it(self):
        pair = self.pair(480, fps=60)
        second = SEND.replace('"send"', '"send2"') + END
        with open(pair.a.file, "a", encoding="utf-8") as f:
            f.write(second.format(of="source", **self.where(SECOND_PORT)))
        c = self.third(pair, "c", SECOND_PORT)
        for host in (pair.a, pair.b, c):
            host.start()
        self.delivered(pair.b, 5)
        self.delivered(c, 5)
        for host, name in ((pair.a, "send2"), (c, "receive"), (pair.b, "receive"), (pair.a, "send")):
            wait_for(f"a process of {name}", lambda h=host, n=name: h.kill(n))
            time.sleep(0.2)
        self.all_end_well(pair, 480, pair.a, pair.b, c)

    def test_a_slow_receiver_slows_the_sender_down_without_an_error(self):
        pair = self.pair(80, delay_ms=30)
        pair.b.start()
        pair.a.start()
        self.delivered(pair.b, 20)
        self.assertLess(pair.a.stage("source").get("frames"), 80)
        self.all_end_well(pair, 80, pair.a, pair.b)
        self.assertEqual([pair.a.report()["deaths"], pair.b.report()["deaths"]], [0, 0])

    def test_frames_flow_while_both_supervisors_stand_still_and_deaths_wait_for_them(self):
        pair = self.pair(300, fps=60)
        pair.b.start()
        pair.a.start()
        self.delivered(pair.b, 5)
        pid = pair.b.stage("receive")["pid"]
        path = os.path.join(pair.folder, "carousel", "b", "ledger-sink.bin")
        for host in (pair.a, pair.b):
            host.stop(signal.SIGSTOP)
        before = os.path.getsize(path)
        wait_for("frames go on", lambda: os.path.getsize(path) > before + 20 * 64)
        os.kill(pid, signal.SIGKILL)
        time.sleep(1.5)
        for host in (pair.a, pair.b):
            host.stop(signal.SIGCONT)
        self.all_end_well(pair, 300, pair.a, pair.b)


del Many
if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
