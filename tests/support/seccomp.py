"""Seccomp filters as container runtimes have them: chosen system calls fail with EPERM in a process and its children (x86-64)."""
import ctypes
import struct

PTRACE, PROCESS_VM_READV, PIDFD_OPEN, PIDFD_GETFD = 101, 310, 434, 438
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _EPERM = 0x7FFF0000, 0x00050001
_SET_NO_NEW_PRIVS, _SET_SECCOMP, _MODE_FILTER = 38, 22, 2


class _Program(ctypes.Structure):
    _fields_ = [("count", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


def refuse(*calls):
    """To be called in the child before exec (preexec_fn)."""
    steps = [(_LOAD, 0, 0, 0)]   # the number of the system call
    steps += [(_EQUAL, len(calls) - k, 0, call) for k, call in enumerate(calls)]
    steps += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _EPERM)]
    program = _Program(len(steps), b"".join(struct.pack("HBBI", *step) for step in steps))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in ((_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (_SET_SECCOMP, _MODE_FILTER, ctypes.byref(program), 0, 0)):
        if libc.prctl(*arguments) != 0:
            raise OSError(ctypes.get_errno(), f"prctl({arguments[0]})")
