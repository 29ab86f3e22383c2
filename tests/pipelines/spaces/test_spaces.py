"""Spaces as the command line shows and ends them. Usage: test_spaces.py FOLDER_OF_PROGRAMS PIPELINES_FOLDER."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from space_world import NESTED, Spaces, wait_for  # noqa: E402


class SeenSpaces(Spaces):
    def cleaned(self):
        """What `carousel clean` removes of this test. It also checks the user's default folder, where others may have left files."""
        return [line for line in self.carousel("clean").stdout.splitlines() if self.folder in line]

    def test_ps_lists_clients_with_what_each_holds_and_a_death_gives_it_back(self):
        self.hold("lab")
        one, two = self.client("lab"), self.client("lab")
        seen = self.spaces()["lab"]
        self.assertEqual((seen["state"], seen["of_run"], seen["bytes"]), ("held", False, 4 << 20))
        clients = {c["pid"]: c for c in seen["clients"]}
        self.assertEqual(set(clients), {one.pid, two.pid})
        for c in clients.values():
            self.assertEqual((c["state"], c["command"]), ("attached", "carousel-space-"))
            held = {(h["primitive"], h["as"]): (h["count"], h["bytes"]) for h in c["holds"]}
            self.assertEqual(held, {("turn", "permits"): (1, 0), ("frames", "blocks"): (1, 65536), ("samples", "cells leased"): (1, 0),
                                    ("tiles", "tasks"): (1, 0)})
        figures = {p["name"]: p["figures"] for p in seen["primitives"]}
        self.assertEqual(figures["turn"], {"free": 2, "taken": 2, "waiting": 0})
        self.assertEqual(figures["frames"]["blocks"], 2)
        text = self.carousel("ps", "-p", "lab").stdout
        self.assertIn(f"{one.pid}  carousel-space-  attached", text)
        self.assertIn("frames: 1 blocks (64.0 KiB)", text)
        self.kill(one)
        wait_for("the mend", lambda: set(self.clients_of("lab")) == {two.pid}, 10)
        figures = {p["name"]: p["figures"] for p in self.spaces()["lab"]["primitives"]}
        self.assertEqual((figures["turn"]["free"], figures["frames"]["blocks"]), (3, 1))
        self.assertEqual((figures["samples"]["ready"], figures["tiles"]["waiting"]), (1, 1))
        self.goes_on(two)

    def test_a_deeply_nested_message_is_refused_and_the_holder_continues(self):
        holder = self.hold("lab")
        for key in ("attach", "return", "inspect", "make"):
            self.reply_to(os.path.join(self.folder, "carousel-spaces", "lab", "hold.sock"), f'{{"{key}": {NESTED}}}')
        self.assertIsNone(holder.poll())
        self.client("lab")
        self.assertEqual(self.spaces()["lab"]["holder"], holder.pid)

    def test_other_commands_explain_a_space_and_down_ends_it(self):
        holder = self.hold("lab")
        client = self.client("lab")
        for words in (("kill", "x", "-p", "lab"), ("logs", "-p", "lab"), ("restart", "x", "-p", "lab"), ("top", "-p", "lab"), ("set", "-p", "lab")):
            output = self.carousel(*words)
            self.assertEqual((words, output.returncode), (words, 2))
            self.assertIn('"lab" is a space, not a pipeline', output.stderr)
        self.assertIn("lab  (a space, held by process", self.carousel("kill", "x").stderr)
        for words in (("ps", "-p", ""), ("down", "-p", "")):
            self.assertEqual((words, self.carousel("__complete", *words).stdout), (words, "lab\n"))
        self.assertEqual(self.carousel("__complete", "hold", "").stdout, "")
        output = self.carousel("down", "-p", "lab")
        self.assertIn("1 process still uses its memory", output.stdout)
        holder.wait(10)
        self.assertEqual(self.carousel("__complete", "hold", "").stdout, "lab\n")
        output = self.carousel("ps", "-p", "lab")
        self.assertIn("`carousel hold lab` takes it over", output.stdout)
        self.assertIn("`carousel hold lab` takes it over", self.carousel("down", "-p", "lab").stderr)
        self.goes_on(client)
        client.stdin.close()
        client.wait(10)
        self.assertEqual(self.carousel("ps", "-p", "lab").returncode, 2)

    def test_clean_removes_what_a_dead_space_left_and_never_a_living_ones(self):
        holder = self.hold("lab")
        client = self.client("lab")
        folder = os.path.join(self.folder, "carousel-spaces", "lab")
        long_ago = lambda: os.utime(folder, (1e9, 1e9))  # noqa: E731
        long_ago()
        self.assertEqual(self.cleaned(), [])  # held
        self.kill(holder)
        long_ago()
        self.assertEqual(self.cleaned(), [])  # its client continues
        self.assertIn("1 without a holder", self.carousel("doctor").stdout)
        self.hold("lab", "took over")
        self.goes_on(client)
        for p in self.started:
            self.kill(p)
        self.assertEqual(self.cleaned(), [])  # too recent: a process may be creating it
        long_ago()
        self.assertIn(f"would remove space {folder}", self.carousel("clean", "--dry-run").stdout)
        self.assertIn("dead", self.carousel("doctor").stdout)
        self.assertIn(f"removed space {folder}", self.carousel("clean").stdout)
        self.assertFalse(os.path.exists(folder))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
