"""Runs the stage of a Python file: carousel_stage.py FILE [--describe | ...]. The supervisor starts this for run = "name.py"."""
import importlib.util
import json
import os
import signal
import sys


def refuse_forks(event, arguments):
    if event in ("os.fork", "os.forkpty"):
        raise RuntimeError("a stage must not fork: its child would hold the run's memory and sockets after the stage's death; "
                           "start a program (subprocess), or use multiprocessing's spawn")


def load(file):
    """Loads the file and returns the adapter of the one stage that it defines."""
    from carousel import _stage
    name = os.path.splitext(os.path.basename(file))[0]
    sys.path.insert(0, os.path.dirname(file))   # so that modules in the file's folder can be imported
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return _stage.adapter_of(file, module)


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: carousel_stage.py FILE.py [--describe | -p NAME --stage NAME | --replay FOLDER]")
    file, words = os.path.abspath(sys.argv[1]), sys.argv[2:]
    sys.stdout = sys.stderr   # output then goes to the log; the reply to --describe is not written by Python
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:   # a signal that was ignored at the start stays
                                                                # ignored
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.environ["CAROUSEL_PROGRAM"] = file
    sys.addaudithook(refuse_forks)
    try:
        from carousel import _carousel
        adapter = load(file)
    except BaseException as failure:   # including SystemExit
        try:
            from carousel import _errors
            sentence, traceback = _errors.words_of(type(failure), failure, failure.__traceback__)
        except ImportError:   # the compiled module itself is missing
            sentence, traceback = str(failure), ""
        if "--describe" in words:
            os.write(1, (json.dumps({"error": {"message": sentence, "key": "run"}}) + "\n").encode())
        else:
            sys.stderr.write(f"{traceback}\n{sentence}\n")
        sys.stderr.flush()
        os._exit(2)   # the file must be corrected, because a restart would fail in the same way
    code = _carousel._run_stage([file] + words, adapter)
    sys.stderr.flush()
    os._exit(code)   # the interpreter's finalisation could hang on a stuck stream


if __name__ == "__main__":   # a child of multiprocessing's spawn imports this file under another name
    main()
