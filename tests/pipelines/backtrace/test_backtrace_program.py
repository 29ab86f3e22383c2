"""carousel-backtrace without a supervisor: its priority, and its own limit. Usage: test_backtrace_program.py FOLDER_OF_PROGRAMS"""
import os
import signal
import subprocess
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "support"))
from processes import end_process, wait_for  # noqa: E402

PROGRAM = os.path.join(os.path.abspath(sys.argv[1]), "carousel-backtrace")


class Program(unittest.TestCase):
    def test_it_has_the_lowest_priority_and_ends_although_its_supervisor_has_died(self):
        began = time.monotonic()
        process = subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)   # a record that never comes
        self.addCleanup(process.stdin.close)
        self.addCleanup(end_process, process)
        wait_for("the priority", lambda: os.getpriority(os.PRIO_PROCESS, process.pid) == 10)
        self.assertEqual(process.wait(30), -signal.SIGALRM)
        self.assertGreater(time.monotonic() - began, 10)   # the supervisor's own limit comes first


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=2)
