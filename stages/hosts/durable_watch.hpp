#pragma once
// Polls the progress of the sinks downstream of a receiving stage while the sender waits for it (release =
// "durable"). Uses a dedicated thread, because files may be slow and the link's thread must reply in time.

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "core/types.hpp"

namespace carousel::hosts {

class durable_watch {
public:
    struct set_up {
        std::function<bool()> wanted;  ///< returns true while the sender waits
        std::function<u64()> below;    ///< returns the frame below which all frames are in the files of all
                                       ///< sinks
        std::function<void(u64)> is_durable;
        bool sync = false;  ///< if true, sync(2) is called before each report, so that the reported frames
                            ///< survive a power failure
    };
    explicit durable_watch(set_up s) : set_(std::move(s)), thread_([this] { run(); }) {}
    ~durable_watch();
    durable_watch(const durable_watch&) = delete;
    durable_watch& operator=(const durable_watch&) = delete;

private:
    void run();
    void poll();

    set_up set_;
    std::mutex mutex_;
    std::condition_variable ends_;
    bool ending_ = false;
    u64 reported_ = 0;
    bool failed_ = false;
    std::thread thread_;
};

}  // namespace carousel::hosts
