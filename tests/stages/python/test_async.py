"""`async for frame in port`: cancellation, the death of a stage, the end of a run.

Usage: test_async.py BUILD
"""
import asyncio
import os
import random
import sys
import tempfile
import time
import unittest

import interpreter

BUILD = os.path.abspath(sys.argv[1])
PORT = {"name": "analysis", "run": "port", "inputs": ["source"]}


class Asynchronous(unittest.IsolatedAsyncioTestCase):
    def start(self, *stages, frames=None, fps=200):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        made = carousel.Pipeline(stages=stages, name=f"async-{os.getpid()}", size=(8, 4), device="cpu", fps=fps, folder=scratch.name)
        run = made.start(frames=frames)
        self.addCleanup(run.__exit__)
        return run

    def started(self, frames=None, fps=200):
        return self.start({"name": "source", "run": f"{BUILD}/carousel-test-copy"}, PORT, frames=frames, fps=fps)

    def two_ports(self, frames=None):
        """A writer and a reader: without a program that writes, the reader has nothing to read."""
        return self.start({"name": "source", "run": "port", "output": {"value": "u64[512]"}}, PORT, frames=frames, fps=0)

    def whole(self, run, frames):
        self.assertEqual(run.wait(60), 0, run.log_text(40))
        report = run.report()
        self.assertEqual([report[key] for key in ("frames", "lost", "repeated", "torn")], [frames, 0, 0, 0])

    async def test_a_loop_reads_every_frame_although_its_producer_is_killed_and_ends_with_the_run(self):
        run = self.started(frames=120)
        numbers, ticks = [], 0

        async def tick():
            nonlocal ticks
            while True:
                await asyncio.sleep(0.005)
                ticks += 1

        ticker = asyncio.create_task(tick())
        with carousel.open(run.name) as view, view.reader("analysis") as port:
            async for frame in port:
                numbers.append(frame.frame_number)
                frame.commit()
                if frame.frame_number in (20, 60):
                    await asyncio.to_thread(run.kill, "source")
            self.assertTrue(port.ended)
        ticker.cancel()
        self.assertEqual(numbers, list(range(120)))
        self.assertGreater(ticks, 20)   # the loop was free during the waits
        self.whole(run, 120)

    async def test_a_cancelled_wait_frees_its_port_at_once_and_uses_no_processor_time(self):
        run = self.two_ports()
        with carousel.open(run.name) as view:
            port = view.reader("analysis", patience_s=100)
            used, since = time.process_time(), time.monotonic()
            with self.assertRaises(TimeoutError):
                async with asyncio.timeout(1.0):
                    async for _ in port:
                        self.fail("a frame, without a writer")
            self.assertLess(time.monotonic() - since, 30)   # not the patience
            self.assertLess(time.process_time() - used, 0.5)
            port.close()   # refused while a wait uses it
            view.reader("analysis").close()   # and its place is free

    async def test_cancelling_waits_while_frames_flow_loses_none(self):
        run = self.started(frames=200)
        chance = random.Random(7)
        numbers, cancelled = [], 0

        async def step(port):
            return await anext(aiter(port), None)

        with carousel.open(run.name) as view, view.reader("analysis") as port:
            while not port.ended:
                wait = asyncio.create_task(step(port))
                await asyncio.sleep(chance.choice((0, 0.001, 0.004)))
                if wait.cancel():
                    cancelled += 1
                try:
                    frame = await wait
                except asyncio.CancelledError:
                    continue
                if frame is not None:
                    numbers.append(frame.frame_number)
                    frame.commit()
        self.assertEqual(numbers, list(range(200)))
        self.assertGreater(cancelled, 20)
        self.whole(run, 200)

    async def test_a_writer_and_a_reader_share_an_event_loop(self):
        run = self.two_ports(frames=50)
        numbers = []

        async def write(port):
            async for frame in port:
                with frame:
                    memoryview(frame["out_value"]).cast("B").cast("Q")[0] = frame.frame_number * 3

        async def read(port):
            async for frame in port:
                with frame:
                    self.assertEqual(memoryview(frame["value"]).cast("B").cast("Q")[0], frame.frame_number * 3)
                    numbers.append(frame.frame_number)

        with carousel.open(run.name) as view, carousel.open(run.name) as other:
            await asyncio.gather(write(view.writer("source")), read(other.reader("analysis")))
        self.assertEqual(numbers, list(range(50)))
        self.whole(run, 50)

    async def test_the_newest_frames_are_an_asynchronous_loop_too(self):
        run = self.start({"name": "source", "run": f"{BUILD}/carousel-test-copy"},
                         {"name": "eater", "run": os.path.join(HERE, "eater.py"), "inputs": ["source"], "pause_s": 0.004}, fps=100)
        numbers = []
        with carousel.open(run.name) as view, view.latest("source") as newest:
            async for frame in newest:
                numbers.append(frame.frame_number)
                if len(numbers) == 10:
                    await asyncio.to_thread(run.end)
            self.assertTrue(newest.ended)
        self.assertEqual(numbers, sorted(set(numbers)))
        self.assertGreaterEqual(len(numbers), 10)

    async def test_a_loop_that_gets_nothing_raises_what_a_loop_without_async_raises(self):
        run = self.two_ports()
        with carousel.open(run.name) as view, view.reader("analysis", patience_s=0.2) as port:
            with self.assertRaisesRegex(carousel.NothingNew, "analysis"):
                async for _ in port:
                    pass


HERE = os.path.dirname(os.path.abspath(__file__))

if __name__ == "__main__":
    interpreter.use(BUILD)
    import carousel
    unittest.main(argv=sys.argv[:1], verbosity=2)
