#include "viewer/window/window.hpp"

namespace carousel::viewer {

std::unique_ptr<interop> make_interop(const device::device_id&, u64, std::string& why_not) {
    why_not = "this viewer was built without CUDA";
    return nullptr;
}

}  // namespace carousel::viewer
