"""Runs a stage of a Python file: carousel_stage.py FILE[:NAME] [--describe | ...]. The supervisor starts this for run = "file.py", or
run = "file.py:NAME" if the file has several stages."""
import faulthandler
import glob
import importlib.machinery
import importlib.util
import json
import os
import signal
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# The package is next to this file, or, after the installation of a wheel, in the environment that has this file in its lib/carousel/python.
PACKAGE_FOLDERS = [HERE, *glob.glob(os.path.join(HERE, "../../python3*/site-packages"))]


class CarouselFinder:
    """Finds only the package carousel in PACKAGE_FOLDERS. Putting these folders into sys.path would let a stage that
    has an interpreter of another environment (the key `python`) import the packages of this one."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        return importlib.machinery.PathFinder.find_spec(name, PACKAGE_FOLDERS) if name == "carousel" else None


sys.meta_path.insert(0, CarouselFinder)   # done here and not in main(), because a child process that multiprocessing starts by spawn also
                                          # imports this file


def refuse_forks(event, arguments):
    if event in ("os.fork", "os.forkpty"):
        raise RuntimeError("a stage must not fork: its child would hold the run's memory and sockets after the stage's death; "
                           "start a program (subprocess), or use multiprocessing's spawn")


def load(file, stage):
    """Loads the file and returns the adapter of the stage with the name `stage`, or of the file's only stage if `stage` is ""."""
    from carousel import _stage
    name = os.path.splitext(os.path.basename(file))[0]
    sys.path.insert(0, os.path.dirname(file))   # the stage can then import modules that are in the file's
                                                # folder
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    _stage.loading = file
    spec.loader.exec_module(module)
    _stage.loading = ""
    return _stage.adapter_of(file, module, stage)


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: carousel_stage.py FILE.py[:NAME] [--describe | -p NAME --stage NAME | --replay FOLDER]")
    program, words = os.path.abspath(sys.argv[1]), sys.argv[2:]
    file, _, stage = (program, "", "") if program.endswith(".py") else program.rpartition(":")
    sys.stdout = sys.stderr   # the output then goes to the log; this does not affect the reply to --describe, which Python does not write
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:   # a signal that was ignored at the start stays
                                                                # ignored
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.environ["CAROUSEL_PROGRAM"], os.environ["CAROUSEL_INTERPRETER"] = program, sys.executable   # for dead letters
    sys.addaudithook(refuse_forks)
    if "--describe" not in words:
        faulthandler.enable()   # prints the Python frames after a fatal signal; installed before the runner's handler, which records
                                # the stack and then calls this one
    key = "python"   # the key of the pipeline file that an error message names if the next step fails
    try:
        from carousel import _carousel, _logging
        key = "run"
        _logging.use()
        adapter = load(file, stage)
    except BaseException as failure:   # including SystemExit
        try:
            from carousel import _errors
            sentence, traceback = _errors.words_of(type(failure), failure, failure.__traceback__)
        except ImportError:   # the compiled module itself is missing
            sentence, traceback = str(failure), ""
        if "--describe" in words:
            os.write(1, (json.dumps({"error": {"message": sentence, "key": key}}) + "\n").encode())
        else:
            sys.stderr.write(f"{traceback}\n{sentence}\n")
        sys.stderr.flush()
        os._exit(2)   # the file must be corrected, because a restart would fail in the same way
    code = _carousel._run_stage([file] + words, adapter)
    sys.stderr.flush()
    os._exit(code)   # ends without finalising the interpreter, because the finalisation could hang on a stuck
                     # stream


if __name__ == "__main__":   # a child of multiprocessing's spawn imports this file under another name
    main()
