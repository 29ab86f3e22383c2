"""A sink in Python that takes any frame."""
import carousel


@carousel.stage
def eater(frame):
    pass
