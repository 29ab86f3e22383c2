#include "stages/python/lease.hpp"

#include <exception>
#include <utility>

#include "core/log.hpp"
#include "stages/python/gil.hpp"
#include "stages/python/streams.hpp"

namespace carousel::python {

void lease::join() noexcept {
    if (gpu < 0 || !owner.is_this()) return;
    try {
        if (stream != nullptr) {
            (void)join_or_wait(gpu, stream);
        } else {
            const gil_released others;
            wait_for_all(gpu);
        }
    } catch (const std::exception& e) {
        log::warning("can't wait for the readers of the planes of frame {}: {}", frame_number, e.what());
    }
}

void lease::release() noexcept {
    if (!memory) return;
    if (memory.use_count() > 1) {  // the last owner joins
        memory.reset();
        return;
    }
    join();
    std::shared_ptr<const void> last = std::move(memory);
    memory = nullptr;
    const gil_released others;
    last.reset();
}

}  // namespace carousel::python
