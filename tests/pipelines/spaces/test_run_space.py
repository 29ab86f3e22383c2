"""A running pipeline is a space, too. Usage: test_run_space.py FOLDER_OF_PROGRAMS PIPELINES_FOLDER."""
import os
import signal
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from space_world import NESTED, Spaces, is_alive, wait_for  # noqa: E402


def memory_of_spaces(pid):
    with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
        return f.read().count("carousel-space-")


class RunSpace(Spaces):
    def supervisor(self):
        return self.ps()["pipeline"]["pid"]

    def test_a_run_is_opened_by_its_name_and_costs_no_memory_before(self):
        self.up("--set", "space_mib=3")
        self.assertEqual(memory_of_spaces(self.supervisor()), 0)
        self.assertEqual(self.spaces(), {})
        self.assertNotIn(f"space {self.name}", self.carousel("ps").stdout)
        client = self.client(self.name)
        self.assertEqual(memory_of_spaces(self.supervisor()), 1)
        seen = self.spaces()[self.name]
        self.assertEqual((seen["of_run"], seen["holder"], [c["pid"] for c in seen["clients"]]), (True, self.supervisor(), [client.pid]))
        self.assertEqual(seen["bytes"], 3 << 20)
        self.assertIn(f"space {self.name}: of the pipeline of that name", self.carousel("ps").stdout)
        self.kill(client)
        wait_for("the mend", lambda: not self.clients_of(self.name), 10)
        self.assertEqual(self.spaces()[self.name]["primitives"][0]["figures"]["free"], 4)

    def test_a_deeply_nested_message_is_refused_and_the_supervisor_continues(self):
        self.up()
        supervisor = self.supervisor()
        for text in (f'{{"type": "set", "values": {NESTED}}}', f'{{"type": "return", "memory": {NESTED}}}', f'{{"type": "hello", "stage": {NESTED}}}'):
            self.reply_to(os.path.join(self.folder, "carousel", self.name, "control.sock"), text)
        self.reply_to(os.path.join(self.folder, "carousel-spaces", self.name, "hold.sock"), f'{{"attach": {NESTED}}}')
        self.assertTrue(is_alive(supervisor))
        self.assertEqual(self.supervisor(), supervisor)

    def test_it_outlives_its_supervisor_with_clients_alive(self):
        self.up()
        stages = {s["name"]: s["pid"] for s in self.ps()["stages"]}
        one, two = self.client(self.name), self.client(self.name)
        supervisor = self.supervisor()
        os.kill(supervisor, signal.SIGKILL)
        wait_for("its end", lambda: not is_alive(supervisor))
        self.goes_on(one)  # needs no holder
        output = self.carousel("hold", self.name)
        self.assertEqual(output.returncode, 2)
        self.assertIn("takes it over, including its space", output.stderr)
        self.kill(two)  # no holder runs to repair it
        self.up()
        self.assertEqual({s["name"]: s["pid"] for s in self.ps()["stages"]}, stages)
        wait_for("the clients", lambda: set(self.clients_of(self.name)) == {one.pid}, 10)
        self.assertEqual(self.spaces()[self.name]["primitives"][0]["figures"], {"free": 3, "taken": 1, "waiting": 0})
        self.goes_on(one)
        three = self.client(self.name)
        self.assertEqual(set(self.clients_of(self.name)), {one.pid, three.pid})
        self.assertEqual(self.carousel("down", "-p", self.name).returncode, 0)
        self.goes_on(one)  # also after the end of the run

    def test_a_space_and_a_run_of_one_name_are_never_there_at_once(self):
        self.up()
        output = self.carousel("hold", self.name)
        self.assertEqual(output.returncode, 2)
        self.assertIn(f'a pipeline "{self.name}" is running', output.stderr)
        self.carousel("down", "-p", self.name)
        self.hold(self.name)
        output = self.carousel("run", os.path.join(self.pipelines, "demo.toml"), "--name", self.name, "--device", "cpu", "--frames", "1")
        self.assertEqual(output.returncode, 2)
        self.assertIn("is already held by process", output.stderr)
        self.assertIn("choose another name with -p NAME", output.stderr)


RunSpace.pipelines = os.path.abspath(sys.argv[2])
if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
