"""A stage with a multiprocessing worker, started by spawn."""
import multiprocessing
import os

import carousel
import numpy


def doubled(number):
    return 2 * number, os.getpid()


@carousel.stage(output=carousel.like(0))
class pool:
    def prepare(self, env):
        self.workers = multiprocessing.get_context("spawn").Pool(1)

    def process(self, frame, color, out):
        if frame.frame_number % 5 == 0:
            result, pid = self.workers.apply(doubled, (frame.frame_number,))
            assert result == 2 * frame.frame_number and pid != os.getpid()
            print(f"worker {pid}")
        numpy.copyto(numpy.asarray(out), numpy.asarray(color))
