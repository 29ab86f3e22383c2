"""Spaces in Python: exports, queues, work queues, waits, forks, spawned processes and kills. 
Usage: test_spaces.py BUILD ROOT [--kills N]
"""
import argparse
import contextlib
import ctypes
import gc
import importlib.util
import io
import multiprocessing
import os
import queue
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

import interpreter

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "support"))
from seeds import scaled, seed  # noqa: E402

words = argparse.ArgumentParser()
words.add_argument("build")
words.add_argument("root")
words.add_argument("--kills", type=int, default=0, help="kill clients N times, and run no other test")
ARGS = words.parse_args()
UNIT = 4096

# Holds one object of each kind, a block that is being sent among them, and prints a line.
PEER = """
import sys, carousel
space = carousel.Space("py")
permit = space.semaphore("turn").acquire(10)
kept = space.pool("frames").allocate(3 * 4096, 10)
kept.array((3, 1024), "u4")[:] = 0x5A5A5A5A
sent = space.pool("frames").allocate(4096, 10)
sent.array()[:] = 7
space.block_queue("travelling").put(sent, {"part": 1})
lease = space.queue("samples", element="qd").lease(10)
task = space.work_queue("tasks", element="json 64").claim(10)
space.queue("names").put(kept.share())
print(lease.value, task.value, flush=True)
space.queue("empty").get()
"""
# Uses the pool at random until it is killed: a block's bytes have the number of its owner as long as it owns the block.
CLIENT = """
import os, random, sys, carousel
space = carousel.Space("py", wait=20)
pool, travelling, mine = space.pool("frames"), space.block_queue("travelling"), os.getpid() % 251
random.seed(int(sys.argv[1]))
print("ready", flush=True)
while True:
    try:
        if random.random() < 0.5:
            block = pool.allocate(random.randint(1, 4 * 4096), 0.05)
        else:
            block = travelling.get(0.05)
            number = block.meta["owner"]
            assert (block.array() == number).all(), f"a block of {number} contains other bytes"
        array = block.array()
        array[:] = mine
        assert (array == mine).all(), "another process wrote into a block of this process"
        del array
        if random.random() < 0.5:
            travelling.put(block, {"owner": mine}, 0.05)
        block.free()
    except carousel.TimedOut:
        block = None
"""


# Ends while a thread waits in a queue, and while another writes into a block: neither may crash, nor write into memory of others.
ENDING = """
import threading, carousel
space = carousel.Space("py")
array = space.pool("frames").allocate(4096).array()

def write():
    while True:
        array[:] = 1
for work in space.queue("empty").get, write:
    threading.Thread(target=work, daemon=True).start()
"""


def in_spawned(space, samples):
    """In a spawned process, which gets a Space and a Queue."""
    samples.put((os.getpid(), 0.5), 10)
    with space.semaphore("turn").acquire(10):
        pass


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32), ("id", ctypes.c_int32), ("rank", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.c_void_p),
                ("offset", ctypes.c_uint64)]


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("owner", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("tensor", Tensor)]


def dlpack(memory, max_version):
    """(version, flags, code of the type, shape, address) of the capsule that a consumer of that version gets."""
    capsule = memory.__dlpack__() if max_version is None else memory.__dlpack__(max_version=max_version)
    name = b"dltensor" if max_version is None else b"dltensor_versioned"
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    at = pointer(capsule, name)   # raises ValueError for a capsule of another name
    whole = None if max_version is None else Versioned.from_address(at)
    tensor = Tensor.from_address(at) if whole is None else whole.tensor
    return (None if whole is None else (whole.major, whole.minor), None if whole is None else whole.flags, tensor.code,
            tuple(tensor.shape[:tensor.rank]), tensor.data)


@unittest.skipIf(ARGS.kills, "--kills")
class ReadMe(unittest.TestCase):
    def test_the_lines_of_the_document_run_as_they_are_written(self):
        with open(os.path.join(ARGS.root, "stages/python/README.md"), encoding="utf-8") as text:
            block, = re.findall(r"^```python\n(with carousel.Space.*?)^```$", text.read(), re.M | re.S)
        printed = []
        exec(block, {"carousel": carousel, "print": lambda *values: printed.append(values)})
        self.assertEqual(printed, [({"part": 1}, 512.0 * 512)])


PRIMITIVES = ("space", "turn", "pool", "samples", "empty", "names", "tasks", "travelling")
FOLDER = "carousel-spaces/py"   # of the space in the runtime directory


def wait_until(condition, seconds=10):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


class Spaces(unittest.TestCase):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        folder = os.path.join(os.environ["XDG_RUNTIME_DIR"], FOLDER)
        self.addCleanup(lambda: self.assertTrue(wait_until(lambda: not os.path.exists(folder)), "the holder did not end with its last client"))
        self.addCleanup(gc.collect)
        self.addCleanup(lambda: [delattr(self, name) for name in PRIMITIVES])   # each keeps the space open
        self.addCleanup(self.stack.close)
        self.space = self.stack.enter_context(carousel.Space("py", create=carousel.SpaceSize("16M")))
        self.turn = self.space.semaphore("turn", 1)
        self.pool = self.space.pool("frames", 64 * UNIT, unit=UNIT)
        self.samples = self.space.queue("samples", 8, "qd")
        self.empty = self.space.queue("empty", 8, 8)
        self.names = self.space.queue("names", 8, 32)
        self.tasks = self.space.work_queue("tasks", 8, "json 64", attempts=2)
        self.travelling = self.space.block_queue("travelling", self.pool, 4)

    def start(self, text, *arguments):
        child = subprocess.Popen([sys.executable, "-B", "-c", text, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 env={**os.environ, "PYTHONPATH": os.path.join(os.path.abspath(ARGS.build), "python")})

        def end():
            child.kill()
            child.wait()
            for pipe in (child.stdin, child.stdout, child.stderr):
                pipe.close()
        self.addCleanup(end)
        return child

    @unittest.skipIf(ARGS.kills, "--kills")
    def test_a_killed_process_s_objects_come_back_once(self):
        self.samples.put((1, 0.5))
        task = self.tasks.submit({"tile": [1, 2]})
        deaths = queue.Queue()

        def note(death):
            deaths.put((death, self.pool.state.blocks))
            raise ValueError("an exception of the callback does not end the calls")
        watch = self.stack.enter_context(self.space.on_peer_death(note))
        peer = self.start(PEER)
        self.assertEqual(peer.stdout.readline(), "(1, 0.5) {'tile': [1, 2]}\n")
        self.assertEqual(self.tasks.state_of(task), "claimed")
        with self.assertRaisesRegex(carousel.TimedOut, f"process {peer.pid}"):
            self.turn.acquire(0.02)
        shared = self.pool.open_share(self.names.get(5))
        view = shared.array((3, 1024), "u4")
        self.assertTrue((view == 0x5A5A5A5A).all())
        self.assertFalse(view.flags.writeable)
        self.assertTrue(shared.is_valid())
        self.assertEqual(self.pool.state.blocks, 1)
        offset = shared.offset
        with contextlib.redirect_stderr(io.StringIO()) as printed:
            for n in range(2):
                peer.kill()
                death, blocks = deaths.get(timeout=10)
                if n == 0:
                    self.assertEqual(death, carousel.PeerDeath(peer.pid, [("frames", offset, 3 * UNIT)], 1, 3 * UNIT, 1, 1, 1))
                    self.assertEqual(blocks, 0)   # it is reported when they are back
                    peer = self.start("import carousel, time; space = carousel.Space('py'); print(flush=True); time.sleep(60)")
                    peer.stdout.readline()
            self.assertEqual((death.pid, death.blocks, death.permits), (peer.pid, [], 0))
            watch.close()
        self.assertIn("an exception of the callback", printed.getvalue())
        self.assertTrue(deaths.empty())
        self.turn.acquire(10).release()
        with self.tasks.claim(10) as again:
            self.assertEqual((again.value, again.id, again.failed_attempts), ({"tile": [1, 2]}, task, 1))
        self.assertEqual(self.tasks.state_of(task), "over")
        with self.samples.lease(10) as lease:
            self.assertEqual(lease.value, (1, 0.5))
        with self.travelling.get(10) as block:
            self.assertEqual((block.meta, int(block.array().sum())), ({"part": 1}, 7 * UNIT))
        self.pool.allocate(64 * UNIT, 10).free()
        self.assertFalse(shared.is_valid())
        with self.assertRaises(BufferError):
            shared.close()
        del view
        shared.close()

    def kill_holder(self):
        with open(os.path.join(os.environ["XDG_RUNTIME_DIR"], FOLDER, "record"), encoding="utf-8") as record:
            os.kill(int(record.read().split()[0]), signal.SIGKILL)
        self.assertTrue(wait_until(lambda: not self.space.is_held))

    @unittest.skipIf(ARGS.kills, "--kills")
    def test_a_client_that_leaves_without_a_holder_is_not_reported_as_dead(self):
        text = "import carousel, sys; space = carousel.Space('py', wait=20); print(flush=True); sys.stdin.readline()"
        leaves, exits, dies = (self.start(text + end) for end in ("; space.close(); print(flush=True); sys.stdin.readline()", "", ""))
        for child in leaves, exits, dies:
            child.stdout.readline()
        deaths = queue.Queue()
        self.stack.enter_context(self.space.on_peer_death(deaths.put))
        self.kill_holder()
        for child in leaves, exits:
            child.stdin.write("\n")
            child.stdin.flush()
        leaves.stdout.readline()
        self.assertEqual(exits.wait(20), 0)
        dies.kill()
        dies.wait()
        carousel.Space("py", create=carousel.SpaceSize("16M"), wait=20).close()   # takes over
        self.assertEqual(deaths.get(timeout=10).pid, dies.pid)
        leaves.stdin.close()
        self.assertEqual(leaves.wait(20), 0)
        late = self.start(text)
        late.stdout.readline()
        late.kill()   # reported after the two others, if they are
        self.assertEqual(deaths.get(timeout=10).pid, late.pid)
        self.assertTrue(deaths.empty())

    @unittest.skipIf(ARGS.kills, "--kills")
    def test_a_holder_that_hangs_at_its_start_is_ended(self):
        with tempfile.NamedTemporaryFile("w", suffix=".sh") as hangs:
            hangs.write("exec sleep 100\n")
            hangs.flush()
            with mock.patch("carousel._space.HOLDER_START_S", 0.2), mock.patch("carousel._space._holder_command", lambda *_: ["sh", hangs.name]):
                with self.assertRaisesRegex(carousel.ConfigError, "does not hold the space after 0.2 s, and was ended"):
                    carousel.Space("hangs", create=carousel.SpaceSize("8M"))

    @unittest.skipIf(ARGS.kills, "--kills")
    def test_a_space_has_the_primitives_of_its_creation(self):
        size = carousel.SpaceSize("8M", pools={"p": {"nbytes": 1 << 20, "unit": UNIT}}, semaphores={"s": {"permits": 2}},
                                  queues={"q": {"slots": 4, "element": "qd"}}, work_queues={"w": {"slots": 8, "element": 16}},
                                  block_queues={"b": {"pool": "p", "slots": 3}})
        with carousel.Space("shaped", create=size):
            with carousel.Space("shaped") as space:
                self.assertEqual(space.semaphore("s").free, 2)
                with space.pool("p").allocate(UNIT) as block:
                    block.array()[:] = 3
                    space.block_queue("b").put(block, {"part": 1})
                space.queue("q", element="qd").put((1, 0.5))
                space.work_queue("w").submit(bytes(16))
            with carousel.Space("shaped", create=size) as again:   # as a second process with the same text
                self.assertEqual(again.block_queue("b").get(5).meta, {"part": 1})
                self.assertEqual(again.queue("q", element="qd").get(5), (1, 0.5))
            with self.assertRaisesRegex(carousel.ConfigError, "a semaphore of 2 permits"):
                carousel.Space("shaped", create=size._replace(semaphores={"s": {"permits": 3}}))

    @unittest.skipIf(ARGS.kills, "--kills")
    def test_processes_that_start_at_once_create_one_space_which_outlives_its_creator(self):
        text = ("import carousel, sys; space = carousel.Space('together', create=carousel.SpaceSize('8M'), wait=20); "
                "pool = space.pool('p', 4096); print(space.nbytes, flush=True); sys.stdin.readline()")
        with carousel.Space("at-once", create=carousel.SpaceSize("8M"), wait=0) as space:
            self.assertEqual(space.nbytes, 8 << 20)
        children = [self.start(text) for _ in range(4)]
        self.assertEqual({child.stdout.readline() for child in children}, {f"{8 << 20}\n"})
        with carousel.Space("together") as space:
            for child in children:
                child.kill()
                child.wait()
            space.pool("p").allocate(4096, 10).free()
        self.assertTrue(wait_until(lambda: not os.path.exists(os.path.join(os.environ["XDG_RUNTIME_DIR"], "carousel-spaces/together"))))

    @unittest.skipIf(ARGS.kills, "--kills")
    def test_an_export_keeps_a_block_from_being_freed_or_sent(self):
        block = self.pool.allocate(2 * UNIT)
        a = block.array((UNIT // 2,), "f4")
        half = a[100:]
        del a
        for end in (block.free, lambda: self.travelling.put(block), lambda: block.__exit__(None, None, None)):
            with self.assertRaisesRegex(BufferError, "1 array or tensor uses"):
                end()
        half[:] = 3
        self.assertEqual(self.pool.state.blocks, 1)
        del half
        view = block.memory()
        self.assertEqual((view.nbytes, block.exports), (2 * UNIT, 1))
        view.release()
        dl = numpy.from_dlpack(block)
        self.assertEqual((dl.dtype, dl.shape, block.exports), (numpy.uint8, (2 * UNIT,), 1))
        del dl
        self.assertEqual(block.exports, 0)
        block.array((4, 8), "f4")[1, 2] = 2.5
        floats = numpy.from_dlpack(block.view((4, 8), "f32"))
        self.assertEqual((floats.dtype, floats.shape, floats[1, 2], block.exports), (numpy.float32, (4, 8), 2.5, 1))
        del floats
        block.free()
        block.free()
        with self.assertRaisesRegex(carousel.ConfigError, "closed"):
            block.array()
        with self.assertRaisesRegex(ValueError, "were requested"), self.pool.allocate(1) as small:
            small.array((UNIT + 1,))
        self.assertEqual(self.pool.state.blocks, 0)

    @unittest.skipIf(ARGS.kills, "--kills")
    def test_dlpack_has_the_version_flag_and_type_that_its_consumer_requests(self):
        with self.pool.allocate(UNIT) as block, self.pool.open_share(block.share()) as shared:
            for words, version, flags, code in ((("f32", None), None, None, 2), (("f32", (1, 0)), (1, 0), 0, 2), (("f32", (1, 7)), (1, 0), 0, 2),
                                                (("bf16", None), None, None, 4), (("f8_e4m3", (1, 1)), (1, 1), 0, 10),
                                                (("f8_e5m2", (2, 0)), (1, 1), 0, 12)):
                self.assertEqual(dlpack(block.view((2, 8), words[0]), words[1]), (version, flags, code, (2, 8), block._address))
            self.assertEqual(dlpack(shared, (1, 0))[:3], ((1, 0), 1, 1))   # the flag: read-only
            for memory, words in ((shared, {}), (shared, {"max_version": (0, 8)}), (block.view(8, "f8_e4m3"), {}),
                                  (block.view(8, "f8_e5m2"), {"max_version": (1, 0)}), (block, {"copy": True}), (block, {"dl_device": (2, 0)})):
                with self.assertRaises(BufferError):
                    memory.__dlpack__(**words)
            self.assertEqual(memory.__dlpack_device__(), (1, 0))
            with self.assertRaisesRegex(ValueError, "expected one of u8"):
                block.view(8, "float8_e4m3fn")
            with self.assertRaisesRegex(ValueError, "were requested"):
                block.view(UNIT, "f32").__dlpack__()
            gc.collect()
            self.assertEqual((block.exports, shared.exports), (0, 0))

    @unittest.skipIf(ARGS.kills or not importlib.util.find_spec("torch"), "torch is not installed, or --kills")
    def test_a_tensor_is_the_block_s_memory(self):
        import torch
        with self.pool.allocate(4 * UNIT) as block:
            t = block.tensor((64, 32), torch.bfloat16)
            t.fill_(1.5)
            part = t[3]
            del t
            self.assertEqual(bytes(block.memory()[:4]), b"\xc0\x3f\xc0\x3f")
            self.assertEqual((block.exports, float(part.sum())), (1, 48.0))
            with self.assertRaises(BufferError):
                block.free()
            del part
            self.assertEqual(block.tensor().shape, (4 * UNIT,))
            shared = self.pool.open_share(block.share())
            self.assertEqual(float(shared.tensor((64, 32), torch.bfloat16).sum()), 64 * 32 * 1.5)
            shared.close()
        self.assertEqual(self.pool.state.blocks, 0)

    @unittest.skipIf(ARGS.kills, "--kills")
    def test_an_array_outlives_its_block_s_name(self):
        a = self.pool.allocate(UNIT).array()   # no other reference to the block
        gc.collect()
        self.assertEqual(self.pool.state.blocks, 1)
        a[:] = 4
        del a
        gc.collect()
        self.assertEqual(self.pool.state.blocks, 0)

    @unittest.skipIf(ARGS.kills, "--kills")
    def test_a_wait_releases_the_gil_and_ends_with_ctrl_c(self):
        for wait in (self.empty.get, self.travelling.get, self.tasks.claim, lambda: next(iter(self.tasks)), lambda: self.empty.lease(30)):
            ticks, stop = [], threading.Event()
            counter = threading.Thread(target=lambda: [ticks.append(1) for _ in iter(lambda: stop.wait(0.005), True)])
            counter.start()
            timer = threading.Timer(0.15, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            begin = time.monotonic()
            with self.assertRaises(KeyboardInterrupt):
                wait()
            stop.set()
            counter.join()
            timer.join()
            self.assertLess(time.monotonic() - begin, 5)
            self.assertGreater(len(ticks), 3)
        handled = []
        before = signal.signal(signal.SIGALRM, lambda *_: handled.append(1))
        signal.setitimer(signal.ITIMER_REAL, 0.03)
        with self.assertRaises(carousel.TimedOut):   # a handler that returns does not end the wait
            self.empty.get(0.3)
        signal.signal(signal.SIGALRM, before)
        self.assertEqual(handled, [1])

    @unittest.skipIf(ARGS.kills, "--kills")
    def test_elements_of_each_form_and_the_limits_of_each(self):
        self.samples.put((-3, 1.5))
        self.assertEqual((len(self.samples), self.samples.get(0)), (1, (-3, 1.5)))
        with self.assertRaisesRegex(ValueError, "8 bytes, but 3"):
            self.empty.put(b"abc")
        with self.assertRaisesRegex(ValueError, "does not fit"):
            self.tasks.submit({"x": "y" * 80})
        with self.assertRaisesRegex(carousel.TimedOut, "not possible at once"):
            self.empty.get(0)
        with self.assertRaises(TimeoutError):
            self.empty.get(0.01)
        for timeout in (-1, float("nan")):
            with self.assertRaises(ValueError):
                self.empty.get(timeout)
        with self.assertRaisesRegex(carousel.ConfigError, "has no queue 'nothing'"):
            self.space.queue("nothing")
        with self.assertRaisesRegex(carousel.ConfigError, "is not a queue"):
            self.space.queue("turn")
        with self.assertRaisesRegex(carousel.ConfigError, "a semaphore of 1 permits"):
            self.space.semaphore("turn", 2)
        with self.assertRaisesRegex(carousel.ConfigError, "no process holds it"):
            carousel.Space("no-such-space", wait=0.01)
        with self.assertRaisesRegex(carousel.ConfigError, r"open the space with its GPU, as in Space\('py', device=0\)"):
            self.space.pool("gpu", UNIT, device="cuda")
        with self.assertRaisesRegex(carousel.ConfigError, "expected a size such as 256M"):
            carousel.Space("other", create=carousel.SpaceSize("many"))
        with self.assertRaisesRegex(ValueError, r"needs the GPU, as in Space\(\.\.\., device=0\)"):
            carousel.Space("other", create=carousel.SpaceSize(gpu="1G"))
        with self.pool.allocate(1) as block, self.turn.acquire(1) as permit:
            for of_one_process in block, permit:
                with self.assertRaisesRegex(TypeError, "belongs to one process"):
                    __import__("pickle").dumps(of_one_process)
        for n in range(2):
            for task in self.tasks if n else [None]:
                if task is None:
                    self.tasks.submit(5)
                    continue
                self.assertEqual(task.value, 5)
                break
        self.assertEqual((self.tasks.waiting, self.tasks.claim(0).fail(), self.tasks.dead_letters), (1, None, 1))
        self.assertEqual((self.tasks.take_dead_letter(), self.tasks.take_dead_letter()), (5, None))

    @unittest.skipIf(ARGS.kills, "--kills")
    def test_threads_end_neither_a_handle_nor_a_block_under_each_other(self):
        ending = self.start(ENDING)
        self.assertEqual((ending.wait(30), ending.stderr.read()), (0, ""))
        got = queue.Queue()
        mine = self.space.queue("empty", 8, 8)
        waiting = threading.Thread(target=lambda: got.put(mine.get(10)))
        waiting.start()
        time.sleep(0.05)
        mine.close()   # its wait continues
        self.empty.put(b"12345678")
        self.assertEqual(got.get(timeout=10), b"12345678")
        waiting.join()
        with self.assertRaisesRegex(carousel.ConfigError, "closed"):
            mine.get(0)
        for _ in range(4):
            self.travelling.put(self.pool.allocate(UNIT))
        block = self.pool.allocate(UNIT)
        waiting = threading.Thread(target=lambda: got.put(self.assertRaises(carousel.TimedOut, self.travelling.put, block, None, 0.3)))
        waiting.start()
        time.sleep(0.1)
        with self.assertRaises(carousel.ConfigError):   # it is being sent
            block.array()
        waiting.join()
        block.array()[:] = 1   # it was not sent
        block.free()
        while len(self.travelling):
            self.travelling.get(1).free()
        self.assertEqual(self.pool.state.blocks, 0)

    @unittest.skipIf(ARGS.kills, "--kills")
    def test_what_can_t_be_decoded_is_given_back(self):
        bytes_of_tasks = self.space.work_queue("tasks")
        task = bytes_of_tasks.submit(b"{".ljust(64))
        for _ in range(2):
            with self.assertRaises(ValueError):
                self.tasks.claim(1)
            gc.collect()
        self.assertEqual((self.tasks.state_of(task), bytes_of_tasks.take_dead_letter()), ("dead letter", b"{".ljust(64)))

    @unittest.skipIf(ARGS.kills, "--kills")
    def test_deaths_reach_a_callback_that_is_late(self):
        pool = self.space.pool("many", 2048 * UNIT, unit=UNIT)
        seen, go_on = [], threading.Event()

        def die():
            child = os.fork()
            if child == 0:
                try:
                    own = carousel.Space("py").pool("many")
                    kept = [own.allocate(UNIT) for _ in range(256)]   # a report of 256 blocks is long: few fit into the socket
                    os.kill(os.getpid(), signal.SIGKILL)
                finally:
                    os._exit(len(kept) > 0)
            os.waitpid(child, 0)
            return child
        die()   # before the watch: not reported
        with self.space.on_peer_death(lambda death: (seen.append(death.pid), go_on.wait(20))):
            died = [die() for _ in range(18)]
            go_on.set()
            deadline = time.monotonic() + 20
            while len(seen) < len(died) and time.monotonic() < deadline:
                time.sleep(0.01)
        self.assertEqual(seen, died)
        self.assertEqual(pool.state.blocks, 0)

    @unittest.skipIf(ARGS.kills, "--kills")
    def test_a_forked_child_is_refused_and_a_spawned_one_opens_its_own(self):
        block = self.pool.allocate(UNIT)
        block.array()[:] = 9
        child = os.fork()
        if child == 0:
            try:
                self.empty.put(b"12345678", 0)
            except carousel.Error as failure:
                with carousel.Space("py") as own:
                    own.semaphore("turn").acquire(5).release()
                    os._exit(0 if "parent of this process" in str(failure) else 4)
            os._exit(3)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertEqual(int(block.array().sum()), 9 * UNIT)
        block.free()
        process = multiprocessing.get_context("spawn").Process(target=in_spawned, args=(self.space, self.samples))
        process.start()
        self.assertEqual(self.samples.get(20), (process.pid, 0.5))
        process.join(20)
        self.assertEqual(process.exitcode, 0)
        self.assertEqual(self.turn.free, 1)

    @unittest.skipUnless(ARGS.kills, "--kills N")
    def test_kills_lose_no_block_and_give_none_twice(self):
        number = seed(1)
        chosen = random.Random(number)

        def started(seed_of_client):
            client = self.start(CLIENT, str(seed_of_client))
            if client.stdout.readline() != "ready\n":
                self.fail(client.stderr.read())
            return client
        clients = [started(number * 1000 + k) for k in range(3)]
        for k in range(scaled(ARGS.kills)):
            time.sleep(chosen.uniform(0, 0.05))
            at = chosen.randrange(len(clients))
            self.assertIsNone(clients[at].poll(), clients[at].stderr.read() if clients[at].poll() is not None else "")
            clients[at].kill()
            clients[at].wait()
            clients[at] = started(number * 1000 + 100 + k)
        for client in clients:
            self.assertIsNone(client.poll(), client.stderr.read() if client.poll() is not None else "")
            client.kill()
            client.wait()
        deadline = time.monotonic() + 10
        while self.pool.state.blocks and time.monotonic() < deadline:
            time.sleep(0.01)
        while len(self.travelling):
            self.travelling.get(1).free()
        self.pool.allocate(64 * UNIT, 10).free()   # the whole pool: nothing is lost
        print(f"{ARGS.kills} kills of NumPy clients, seed {number}: no block lost or owned twice")


if __name__ == "__main__":
    interpreter.use(ARGS.build)
    import carousel
    import numpy
    unittest.main(argv=sys.argv[:1], verbosity=2)
