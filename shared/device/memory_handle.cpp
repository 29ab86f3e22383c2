#include "device/backend.hpp"

namespace carousel::device {

const char* name_of(memory_kind kind) noexcept {
    switch (kind) {
        case memory_kind::memfd:
            return "memfd";
        case memory_kind::vmm:
            return "vmm";
        case memory_kind::ipc:
            return "ipc";
    }
    return "unknown";
}

}  // namespace carousel::device
