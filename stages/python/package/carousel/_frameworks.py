"""Makes the frame's stream the current stream of torch and CuPy, if they are loaded. Imports neither."""
import sys

_streams = {}


def _of(framework, module, stream, device):
    key = framework, stream, device
    if key not in _streams:
        _streams[key] = module.cuda.ExternalStream(stream, device=device) if framework == "torch" \
            else module.cuda.ExternalStream(stream, device)
    return _streams[key]


def enter(stream, device):
    """Makes `stream` (a cudaStream_t of the GPU with the number `device`) the current stream of this thread."""
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "cuda") and ("torch" in _seen or torch.cuda.is_available()):
        _seen.add("torch")
        torch.cuda.set_stream(_of("torch", torch, stream, device))
    cupy = sys.modules.get("cupy")
    if cupy is not None and hasattr(cupy, "cuda") and hasattr(cupy.cuda, "ExternalStream"):
        if "cupy" not in _seen:
            cupy.cuda.Device(device).use()
            _seen.add("cupy")
        _of("cupy", cupy, stream, device).use()


_seen = set()   # the frameworks that were found to be able to use a GPU
