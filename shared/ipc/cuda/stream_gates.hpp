#pragma once
// Streams that wait for a permit of a semaphore. Only CPUs change the semaphore's words: a thread of this
// process waits in the semaphore's line on behalf of the stream, which waits at a gate (ipc/gate.hpp).
//
// The order in the stream is: a host function notifies the thread, the stream waits at the gate, kernels run,
// and a host function gives the permit back. The host functions never block, so no stream delays another one.
//
// The code in ipc/gate.hpp determines the result of a wait, and also which call gives the permit back. A
// crash may leave a permit that is not given back, a place in the line, and a gate at which no stream waits;
// semaphore.hpp and gate.hpp describe the repair.

#include <cuda_runtime_api.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "ipc/attachment.hpp"
#include "ipc/gate.hpp"

namespace carousel::ipc {

class stream_gates;

/// One wait of one stream. The mutex of its stream_gates guards this object.
struct stream_wait : gate_wait {
    stream_gates* in = nullptr;
    u32 place = 0, number = 0;  ///< number: index of its gate in the gate row
    u64 timeout_ns = 0;
};

class stream_gates {
public:
    /// Page-locks the gates of this process for the GPU `ordinal`. Throws device_error.
    stream_gates(attachment& to, int ordinal);
    ~stream_gates();
    stream_gates(const stream_gates&) = delete;
    stream_gates& operator=(const stream_gates&) = delete;

    /// Throws config_error if there is no timeout, or if there are too many concurrent waits.
    [[nodiscard]] std::shared_ptr<stream_wait> acquire(u32 place, cudaStream_t stream, i64 timeout_ns,
                                                       const std::string& name);
    /// In stream order.
    void release(const std::shared_ptr<stream_wait>& w, cudaStream_t stream);
    /// Gives the permit back at once if it is granted. If the permit is not granted yet, gives it back as
    /// soon as it is granted.
    void drop(const std::shared_ptr<stream_wait>& w);
    /// For kernels.
    [[nodiscard]] const u32* word_of(const stream_wait& w) const;

private:
    struct line {
        std::deque<std::shared_ptr<stream_wait>> requested;
        std::condition_variable any;
        std::thread thread;
    };
    static void CUDART_CB on_acquire(void* wait);
    static void CUDART_CB on_released(void* wait);
    void serve(u32 place, line& l);
    [[nodiscard]] semaphore semaphore_at(u32 place) const {
        return {to_->block().block_of<semaphore_block>(place), to_->epoch()};
    }
    attachment* to_;
    gate_row* row_;
    std::byte* on_device_ = nullptr;
    std::mutex mutex_;
    std::weak_ptr<stream_wait> used_[gates_each];
    std::map<u32, line> lines_;
    bool ends_ = false;
};

}  // namespace carousel::ipc
