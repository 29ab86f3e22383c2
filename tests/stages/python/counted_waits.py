"""What gpu/count_waits.cpp counts of a process, through CUPTI: the calls with which it waits for its GPU, and those that enqueue."""
import glob
import importlib.util
import os


def find_cupti():
    """CUPTI's library: the one in COUNT_WAITS_CUPTI, a toolkit's, or the one that comes with torch."""
    packages = importlib.util.find_spec("nvidia")
    places = [f"{folder}/cuda_cupti/lib/libcupti.so*" for folder in (packages.submodule_search_locations if packages else ())]
    places += [f"{folder}/cu1*/lib/libcupti.so*" for folder in (packages.submodule_search_locations if packages else ())]
    places += ["/usr/local/cuda/extras/CUPTI/lib64/libcupti.so*", "/usr/local/cuda/lib64/libcupti.so*"]
    found = [file for place in places for file in sorted(glob.glob(place))]
    return os.environ.get("COUNT_WAITS_CUPTI") or (found[0] if found else None)


def calls_between(before, after):
    """How often each call was made between two outputs of count_waits.cpp, by name."""
    counts = [{name: int(count) for name, count in (line.split() for line in text.splitlines())} for text in (before, after)]
    return {name: count - counts[0][name] for name, count in counts[1].items()}
