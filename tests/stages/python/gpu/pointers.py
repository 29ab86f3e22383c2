"""torch.from_dlpack, cupy.from_dlpack and cupy.asarray of a slot share its memory: if a pointer differs, the stage fails."""
import carousel
import cupy
import torch


@carousel.stage(output=carousel.like(0), device="cuda")
def pointers(frame, color, out):
    for plane in (color, out):
        slot = plane.__cuda_array_interface__["data"][0]
        tensor, array, other = torch.from_dlpack(plane), cupy.from_dlpack(plane), cupy.asarray(plane)
        assert tensor.data_ptr() == slot and array.data.ptr == slot and other.data.ptr == slot, \
            (hex(slot), hex(tensor.data_ptr()), hex(array.data.ptr), hex(other.data.ptr))
        assert tuple(tensor.shape) == plane.shape and str(tensor.dtype) == "torch.uint8"
        assert tensor.device == torch.device(plane.device), (tensor.device, plane.device)
        del array, other
    assert torch.cuda.current_stream().cuda_stream == frame.stream, "torch's current stream is not the frame's"
    assert cupy.cuda.get_current_stream().ptr == frame.stream, "CuPy's current stream is not the frame's"
    if frame.frame_number == 0:
        print(f"the slot at {hex(color.__cuda_array_interface__['data'][0])} is torch's {hex(torch.from_dlpack(color).data_ptr())}")
    torch.from_dlpack(out).copy_(torch.from_dlpack(color))
    del tensor
