"""The example of a model server: a killed worker costs no request, no block and no second load of the weights.
Usage: test_model_server.py BUILD ROOT [--device cuda:0]
"""
import argparse
import os
import re
import subprocess
import sys
import unittest

import interpreter

words = argparse.ArgumentParser()
words.add_argument("build")
words.add_argument("root")
words.add_argument("--device", default="cpu")
ARGS = words.parse_args()


class ModelServer(unittest.TestCase):
    def test_a_killed_worker_costs_no_request_and_no_load(self):
        done = subprocess.run([sys.executable, "-B", os.path.join(ARGS.root, "stages/examples/model_server/model_server.py"), "--device", ARGS.device,
                               "--name", f"model-server-{os.getpid()}"], capture_output=True, text=True, timeout=100,
                              env={**os.environ, "PYTHONPATH": os.path.join(os.path.abspath(ARGS.build), "python")})
        print(done.stdout)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.count("the weights are loaded"), 1)
        blocks, = re.findall(r"is dead: (\d+) blocks are free again, [01] request is served again", done.stdout)
        self.assertIn(int(blocks), (3, 4))   # 3: between the free() and the allocate() of a request
        submitted, answered = re.search(r"^(\d+) requests, (\d+) answered; equal requests had equal answers$", done.stdout, re.M).groups()
        self.assertEqual(submitted, answered)
        survivor, = re.findall(r"^worker \d+ served (\d+) requests, at most", done.stdout, re.M)
        self.assertGreater(int(survivor), 4)
        self.assertIn("is new: its first answer came", done.stdout)


if __name__ == "__main__":
    interpreter.use(ARGS.build)
    unittest.main(argv=sys.argv[:1], verbosity=2)
