"""The examples of <carousel/ipc.hpp>, built against an installation, with the installed `carousel hold`.

Usage: test_ipc_examples.py BUILD_FOLDER ROOT CMAKE CXX NVCC
"""
import os
import re
import signal
import subprocess
import sys
import time
import unittest

from installed import Installation


class IpcExamples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.all = Installation(sys.argv[1:])
        cls.folder = cls.all.copy_of_example("ipc")
        cls.all.build_without_toolkit(cls.folder)

    @classmethod
    def tearDownClass(cls):
        cls.all.end()

    def setUp(self):
        self.children = []
        self.holder = self.start_holder()

    def tearDown(self):
        for child in self.children:
            child.kill()
            child.wait()
            for pipe in (child.stdout, child.stderr):
                if pipe:
                    pipe.close()

    def start(self, *words):
        child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.all.environment)
        self.children.append(child)
        return child

    def start_holder(self):
        holder = self.start(self.all.program("carousel"), "hold", "lab")
        self.first_line = holder.stdout.readline()
        return holder

    def run_example(self, name, *words):
        done = subprocess.run([os.path.join(self.folder, "build", name), *words], capture_output=True, text=True, check=False,
                              env=self.all.environment, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def start_example(self, name, *words):
        return self.start(os.path.join(self.folder, "build", name), *words)

    def start_turns(self):
        """The process keeps its turn for a long time, and has had one. (Its output goes to a file: a full pipe would stop the process in its turn.)"""
        file = os.path.join(self.all.folder, f"turns{len(self.children)}")
        with open(file, "w", encoding="utf-8") as out:
            child = subprocess.Popen([os.path.join(self.folder, "build", "semaphore"), "1000000"], stdout=out, env=self.all.environment)
        self.children.append(child)
        while os.path.getsize(file) == 0:
            self.assertIsNone(child.poll())
            time.sleep(0.01)
        return child

    def test_what_one_pushes_another_pops(self):
        pusher = self.start_example("queue", "push", "1000")   # more than fit
        self.assertIn("1000 samples, sum 249750.0", self.run_example("queue", "pop", "1000"))
        self.assertEqual(pusher.wait(60), 0)

    def test_each_tile_is_done_once_by_two_workers(self):
        self.run_example("work_queue", "submit", "300")
        other = self.start_example("work_queue", "run")
        done = re.findall(r"^tile .*", self.run_example("work_queue", "run"), re.M)
        done += re.findall(r"^tile .*", other.communicate(timeout=60)[0], re.M)
        self.assertEqual(len(done), 300)
        self.assertEqual(len(set(done)), 300)

    def test_blocks_change_hands(self):
        giver = self.start_example("pool", "send", "20")
        self.assertIn("picture 19, 320x200", self.run_example("pool", "take", "20"))
        self.assertEqual(giver.wait(60), 0)

    def test_programs_in_c_and_in_cpp_share_a_pool(self):
        for sender, receiver in (("blocks", "pool"), ("pool", "blocks")):
            giver = self.start_example(sender, "send", "20")
            self.assertIn("picture 19, 320x200", self.run_example(receiver, "take", "20"))
            self.assertEqual(giver.wait(60), 0)

    def test_a_program_in_c_is_built_with_the_flags_of_pkg_config(self):
        folder = os.path.join(self.all.prefix, "lib", "pkgconfig")
        words = ["--cflags", "--libs", "carousel-space"]
        try:
            found = subprocess.run(["pkg-config", *words], capture_output=True, text=True, check=False, env={**os.environ, "PKG_CONFIG_PATH": folder})
        except FileNotFoundError:
            self.skipTest("pkg-config is not installed")
        self.assertEqual(found.returncode, 0, found.stderr)
        program = os.path.join(self.all.folder, "blocks")
        done = subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-pedantic", "-Werror", "-o", program, os.path.join(self.folder, "blocks.c"),
                               *found.stdout.split(), f"-Wl,-rpath,{self.all.prefix}/lib"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        giver = self.start_example("pool", "send", "3")
        taken = subprocess.run([program, "take", "3"], capture_output=True, text=True, check=False, env=self.all.environment, timeout=60)
        self.assertEqual((taken.returncode, taken.stdout.count("picture")), (0, 3), taken.stderr)
        self.assertEqual(giver.wait(60), 0)

    def test_a_killed_holder_of_the_permit_gives_it_back_and_a_killed_holder_of_the_space_is_replaced(self):
        self.assertEqual(self.first_line, 'holding "lab": 64.0 MiB\n')
        self.start_turns()
        victim = self.start_turns()
        victim.send_signal(signal.SIGKILL)
        self.assertEqual(self.run_example("semaphore", "3").count("has its turn"), 3)
        self.holder.send_signal(signal.SIGKILL)
        self.holder.wait()
        second = self.start_holder()
        self.assertRegex(self.first_line, r'took over "lab": 64\.0 MiB, \d clients')
        self.assertEqual(self.run_example("semaphore", "3").count("has its turn"), 3)
        second.send_signal(signal.SIGINT)
        self.assertEqual(second.wait(60), 0)
        self.assertIn("still use", second.stderr.read())

    def test_words_that_make_no_sense(self):
        for words, text in ((["la/b"], "can't be the name of a space"), (["lab"], "is already held by process"),
                            (["x", "--size", "many"], "such as 256M"), (["x", "--size", "-3M"], "such as 256M"), ([], "NAME")):
            done = subprocess.run([self.all.program("carousel"), "hold", *words], capture_output=True, text=True, check=False,
                                  env=self.all.environment, timeout=60)
            self.assertEqual(done.returncode, 2, done)
            self.assertIn(text, done.stderr)


if __name__ == "__main__":
    sys.exit(unittest.main(argv=sys.argv[:1]))
