"""Objects that outlive others: arrays a dropped frame, frames a port, threads and capsules the interpreter, copies a fork. Each
program here once ended by a signal, hung, or saw the memory of another frame.

Usage: test_lifetimes.py BUILD
"""
import subprocess
import sys
import unittest

import interpreter
import port_rig

BEGIN = """
import ctypes, gc, os, signal, sys, threading, time
import carousel
run = carousel.open(sys.argv[1], wait_s=20)
def message_of(call, *words):
    try:
        return call(*words)
    except Exception as e:
        return f"{type(e).__name__}: {e}"
"""
FEED = """
for frame in run.writer("camera", patience_s=60):
    frame.commit()
    time.sleep(0.002)
"""
FILL = "import numpy\n" + FEED.replace("frame.commit()", 'frame["out_value"].copy_from(numpy.full(512, frame.frame_number, "u8")); frame.commit()')
DRAIN = 'for frame in run.reader("analysis", patience_s=60): frame.commit()'


class Lifetimes(unittest.TestCase):
    def rig(self, drains=False, feeds=False, **keys):
        self.at = port_rig.Rig(self, **keys)
        self.drains = drains
        if drains:
            self.started(DRAIN)
        self.feed = self.started(feeds if isinstance(feeds, str) else FEED) if feeds else None
        return carousel.open(self.at.name, wait_s=20)

    def started(self, text):
        program = subprocess.Popen([sys.executable, "-B", "-c", BEGIN + text, self.at.name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True)
        self.addCleanup(program.communicate)
        self.addCleanup(program.kill)
        return program

    def run_script(self, text):
        """Runs a program that must succeed; returns its output."""
        program = self.started(text)
        try:
            words = program.communicate(timeout=40)[0]
        except subprocess.TimeoutExpired:
            program.kill()
            self.fail("it hangs: " + program.communicate()[0])
        self.assertEqual(program.returncode, 0, words)
        return words

    def end(self):
        if self.feed:
            self.feed.kill()
        if not self.drains:
            self.started(DRAIN)
        with carousel.open(self.at.name, wait_s=20).writer("camera", patience_s=20) as writer:
            writer.end()
        self.at.end()

    def test_arrays_of_a_dropped_frame_are_let_go_of_before_the_next_one_and_before_the_end(self):
        writer = self.rig().writer("camera", patience_s=20)
        for keeps in (True, False):   # the frame itself
            frame = writer.next()
            held = memoryview(frame["out_value"])
            with self.assertRaises(ZeroDivisionError):
                with frame:
                    1 / 0
            if not keeps:
                del frame
            for call, what in ((writer.next, "next"), (writer.end, "end")):
                with self.assertRaisesRegex(carousel.Error, rf'an array of plane "value" of frame 0 is held beyond {what}\(\)'):
                    call()
            held[0] = 5   # it does not belong to another frame yet
            del held
        frame = writer.next()
        held = memoryview(frame["out_value"])
        frame.drop()
        writer.close()
        held[0] = 6   # the slot is its own, too, until then
        with self.assertRaisesRegex(carousel.ConfigError, "port camera already has a program"):
            carousel.open(self.at.name, wait_s=0).writer("camera")
        del held
        with carousel.open(self.at.name).writer("camera") as other:
            with other.next() as frame:
                self.assertEqual(frame.frame_number, 0)
        self.end()

    def test_a_signals_handler_may_close_a_port_that_waits_and_do_nothing_else_with_it(self):
        self.rig()
        for port in ('run.writer("camera")', 'run.reader("analysis")'):
            words = self.run_script(f"""
port, late = {port}, []
def close(*_):
    late.append(message_of(port.next, 0))
    port.close()
while (frame := port.next(0.3)) is not None:   # a writer's ring is full then
    frame.commit()
signal.signal(signal.SIGALRM, close)
signal.setitimer(signal.ITIMER_REAL, 0.3)
print(message_of(port.next, 20), late)
""")
            self.assertRegex(words, "^RuntimeError: the port is closed .'RuntimeError: port .* is in use by a call that has not returned")
        self.end()

    def test_nothing_that_a_commit_calls_can_close_its_port(self):
        self.rig(drains=True)
        words = self.run_script("""
gc.disable()
class Cycle:   # which only the commit's own collection finds
    def __init__(self, frame, then):
        self.held, self.me, self.then = memoryview(frame["out_value"]), self, then
    def __del__(self):
        late.append(message_of(self.then))
late, port = [], run.writer("camera")
for then in (port.close, lambda: frame.commit(), lambda: port.next(0)):
    frame = port.next()
    Cycle(frame, then)
    print(message_of(frame.commit))
frame = port.next()
other = threading.Thread(target=lambda: (time.sleep(0.1), late.append(message_of(port.close))))
Cycle(frame, lambda: time.sleep(0.5))
other.start()
print(message_of(frame.commit))
other.join()
refused = [each for each in late if each and "in use by a call that has not returned" in each]
print(frame.frame_number, len(refused), len(late))
""")
        self.assertEqual(words, "None\n" * 4 + "3 4 5\n")
        self.end()

    def test_a_plane_that_is_being_copied_keeps_its_frame_from_its_commit(self):
        self.rig(drains=True, elements=1 << 21)
        words = self.run_script("""
port, refused = run.writer("camera"), 0
for _ in range(50):
    frame = port.next()
    plane = frame["out_value"]
    copies = threading.Thread(target=lambda: message_of(plane.cpu))
    copies.start()   # it has the GIL until the memory is there, and no longer
    time.sleep(0.0005)
    refused += 'an array of plane "value" of frame' in str(message_of(frame.commit))
    copies.join()
    if refused:
        break
print(refused)
""")
        self.assertEqual(words, "1\n")
        self.end()

    def test_where_there_is_no_memory_for_a_newest_frame_the_next_call_asks_again(self):
        self.rig(drains=True, feeds=True, elements=1 << 21)
        words = self.run_script("""
import resource
port = run.latest("camera")
kept = [port.next(20)]
used = int(open("/proc/self/statm").read().split()[0]) * os.sysconf("SC_PAGESIZE")
resource.setrlimit(resource.RLIMIT_AS, (used + (56 << 20), resource.RLIM_INFINITY))
for _ in range(2):
    while not isinstance(got := message_of(port.next, 20), str):
        kept.append(got)
    print("no" if "Cannot allocate memory" in got else got)
kept.clear()
print(port.next(20) is not None)
""")
        self.assertEqual(words, "no\nno\nTrue\n")
        self.end()

    def test_a_forked_child_leaves_frames_alone(self):
        self.rig()
        words = self.run_script("""
port = run.writer("camera")
port.next().commit()
frame = port.next()
newest = [latest := run.latest("camera"), latest.next(20)]
def child():
    for call in (lambda: frame.metadata.update({"n": 1}), lambda: frame["out_part"].set_used(3), lambda: setattr(frame, "capture_ns", 1),
                 frame.commit, frame.drop):
        print("a forked child can't use it" in str(message_of(call)), flush=True)
    newest.clear()
    print("let go", flush=True)
del latest
if (pid := os.fork()) == 0:
    child()
    os._exit(0)
until = time.monotonic() + 20
while (ended := os.waitpid(pid, os.WNOHANG)) == (0, 0) and time.monotonic() < until:
    time.sleep(0.01)
if ended == (0, 0):
    os.kill(pid, 9)
frame.metadata["mine"] = 2
print(ended == (pid, 0), dict(frame.metadata), frame.capture_ns, frame["out_part"].set_used(5))
frame.commit()
""")
        self.assertEqual(words, "True\n" * 5 + "let go\nTrue {'mine': 2} 0 None\n")
        self.end()

    def test_two_threads_in_one_latest_are_refused(self):
        self.rig()
        words = self.run_script("""
port, refused = run.latest("camera"), []
threads = [threading.Thread(target=lambda: refused.append(message_of(port.next, 0.5))) for _ in range(3)]
for each in threads: each.start()
for each in threads: each.join()
print(sorted(str(each) for each in refused))
""")
        self.assertEqual(words.count("is in use by a call that has not returned: a port belongs to one thread"), 2, words)
        self.end()

    def test_a_daemon_thread_that_waits_at_a_port_does_not_crash_the_interpreters_end(self):
        self.rig(feeds=True)
        for loop in ('port = run.latest("camera")\ndef loop():\n  while True: port.next(5)',
                     'port = run.reader("analysis")\ndef loop():\n  for frame in port: frame.commit()'):
            for _ in range(3):
                words = self.run_script(f"{loop}\nthreading.Thread(target=loop, daemon=True).start()\ntime.sleep(0.3)\nprint('leaving', flush=True)")
                self.assertEqual(words, "leaving\n")
        self.end()

    def test_a_closed_observer_frees_its_place_and_its_frames_stay(self):
        view, frames, held = self.rig(feeds=FILL, drains=True), [], []
        with self.assertRaisesRegex(carousel.Error, "camera"):   # at most 8 observers per ring
            for _ in range(9):
                held.append(view.latest("camera"))
        self.assertEqual(len(held), 8)
        for k in range(24):
            newest = held[k % 8]
            newest.close()
            held[k % 8] = view.latest("camera")
            with held[k % 8] as newest:
                frames.append(newest.next())
            newest.close()   # a second close is not an error
            held[k % 8] = view.latest("camera")
        self.assertEqual(repr(newest), "<carousel.Latest, closed>")
        for ask in (newest.next, lambda: next(newest), lambda: newest.stage, lambda: newest.ended):
            with self.assertRaisesRegex(RuntimeError, "this Latest is closed"):
                ask()
        planes = [(f.frame_number, f["value"], numpy.asarray(f["value"])) for f in frames]
        for newest in held:
            newest.close()
        with view.latest("camera") as newest:   # frames of others pass, and do not use that memory
            for _ in range(10):
                newest.next()
        for frame_number, plane, array in planes:
            self.assertTrue((array == frame_number).all() and (numpy.asarray(plane) == frame_number).all(), frame_number)
        self.end()

    def test_the_end_of_with_closes_what_was_opened_of_a_run_and_nothing_else(self):
        self.rig(feeds=FILL)
        for _ in range(3):   # each round has all slots, though nothing of the previous one is released
            with carousel.open(self.at.name) as run:
                held = [run.latest("camera") for _ in range(7)]
                gone, reader = run.latest, run.reader("analysis", patience_s=20)
                for _ in range(5):   # the ring has room for new frames
                    reader.next(20).commit()
                newest, frame = run.latest("camera").next(20), reader.next(20)
                self.assertEqual(frame["value"].shape, (512,))
            self.assertEqual({repr(each) for each in held}, {"<carousel.Latest, closed>"})
            self.assertEqual(repr(reader), "<carousel.Reader, closed>")
            self.assertTrue((numpy.asarray(newest["value"]) == newest.frame_number).all())
            with self.assertRaises(carousel.FrameEnded):
                numpy.asarray(frame["value"])
            for ask in (gone, lambda: run.stages, lambda: run.reader("analysis")):
                with self.assertRaisesRegex(RuntimeError, "run \".*\" is closed; carousel.open"):
                    ask()
            self.assertEqual((run.name, repr(run)), (self.at.name, f'<carousel.Run "{self.at.name}", closed>'))
            run.close()
        again = carousel.open(self.at.name).reader("analysis", patience_s=20)   # the Run is released at once, its port stays
        self.assertEqual(again.next(20).frame_number, frame.frame_number)
        again.close()
        self.end()

    def test_an_array_of_a_plane_s_bytes_is_one_of_its_plane(self):
        view = self.rig(drains=True)
        with view.writer("camera", patience_s=20) as writer:
            frame = writer.next(20)
            as_bytes = frame["out_value"].bytes
            array = numpy.asarray(as_bytes)
            self.assertEqual((array.shape, as_bytes.dtype, as_bytes.name), ((512, 8), "u8", "value"))
            with self.assertRaisesRegex(carousel.Error, "an array of plane \"value\" of frame 0 is held beyond"):
                frame.commit()
            array[:] = 1
            self.assertTrue((numpy.asarray(frame["out_value"]) == 0x0101010101010101).all())
            del array
            frame.commit()
            for ask in (lambda: numpy.asarray(as_bytes), lambda: as_bytes.bytes):
                with self.assertRaises(carousel.FrameEnded):
                    ask()
        self.end()

    def test_the_end_of_with_during_a_wait_is_reported_and_the_place_freed_with_the_wait(self):
        self.rig()
        words = self.run_script("""
port = run.latest("camera")
threading.Timer(0.3, lambda: print(message_of(run.close), flush=True)).start()
print(port.next(1.0), flush=True)
signal.signal(signal.SIGALRM, lambda *_: run.close())
signal.setitimer(signal.ITIMER_REAL, 0.3)
print(message_of(port.next, 20), flush=True)
print(run, port)
""")
        self.assertRegex(words, "^RuntimeError: port \"camera\" is in use by a call that has not returned[^\n]*\nNone\n"
                                "RuntimeError: this Latest is closed[^\n]*\n<carousel.Run \"[^\"]*\", closed> <carousel.Latest, closed>\n$")
        self.end()

    def test_a_dlpack_tensor_may_be_deleted_after_the_interpreters_end(self):
        self.rig()
        words = self.run_script("""
port = run.writer("camera")
capsule = port.next()["out_value"].__dlpack__()
call = lambda name, of, *types: ctypes.PYFUNCTYPE(of, ctypes.py_object, *types)((name, ctypes.pythonapi))
tensor = call("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.c_char_p)(capsule, b"dltensor")
name = ctypes.create_string_buffer(b"used_dltensor")
ctypes.pythonapi.Py_IncRef(ctypes.py_object(name))
call("PyCapsule_SetName", ctypes.c_int, ctypes.c_void_p)(capsule, ctypes.addressof(name))
deleter = ctypes.c_void_p.from_address(tensor + 56).value   # a DLTensor has 48 bytes, the manager's context 8
ctypes.CDLL(None).__cxa_atexit(ctypes.c_void_p(deleter), ctypes.c_void_p(tensor), None)
print("end", flush=True)
""")
        self.assertEqual(words, "end\n")
        self.end()


if __name__ == "__main__":
    interpreter.use(sys.argv[1])
    import carousel
    import numpy
    unittest.main(argv=sys.argv[:1], verbosity=2)
