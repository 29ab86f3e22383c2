"""A fork in Python: the number that it reads, and as a second output its square and a list, as in fork_stage.cpp. It may pause
between the two, the best moment for a kill."""
import time

import carousel
import numpy


@carousel.stage(outputs={"number": carousel.like(0), "square": {"value": "u64[1]", "list": "u16[200]", "type": "test.square"}})
def fork(frame, value, out_number, out_square_value, out_list, *, pause_s: float = 0.0):
    n = frame.frame_number
    assert list(frame.outputs) == ["number", "square"] and list(frame.outputs["square"]) == ["value", "list"]
    assert list(frame.output) == ["value"] and frame["out_square_list"] is frame["out_list"] is out_list
    assert frame["out_number"] is frame.output["value"] is out_number
    frame.metadata["fork"] = n
    out_list.set_used(n % 200 + 1)
    numpy.copyto(numpy.asarray(out_number), numpy.asarray(value))
    time.sleep(pause_s)
    numpy.copyto(numpy.asarray(out_square_value), numpy.asarray(value) ** 2)
    numpy.asarray(out_list)[:n % 200 + 1] = numpy.arange(n, n + n % 200 + 1).astype("u2")
