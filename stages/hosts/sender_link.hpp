#pragma once
// A sending_side with its transport and its thread. Its functions may be called from any thread. Only its own
// thread calls UCX; this thread runs as long as the object exists.

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>

#include "device/backend.hpp"
#include "stages/hosts/link/sending_side.hpp"
#include "stages/hosts/link_end.hpp"
#include "stages/hosts/ucx/transport.hpp"

namespace carousel::hosts {

class sender_link final : private transport::events {
public:
    /// `gpu`: the GPU whose memory contains the frames and from which UCX reads them; null: CPU-readable
    /// memory.
    sender_link(const link_settings& where, hello own_hello, token_file token, u64 first_epoch,
                std::string figures_path, const device::context* gpu = nullptr);
    /// The destructor does not report the end of the stream to the receiver; end() does.
    ~sender_link() override;

    void begin(u64 ring_sequence);
    /// `data` must stay valid until wait_released() has returned true.
    void offer(const frame_message& m, const std::byte* data);
    /// Returns true if the receiver has committed the frame and its memory is free. Waits up to `ns`. Throws
    /// config_error if no retry can help.
    [[nodiscard]] bool wait_released(u64 ring_sequence, u64 ns);
    /// No frame follows. Returns true if the receiver has confirmed the end within `ns`.
    [[nodiscard]] bool end(u64 ring_sequence, u64 ns);
    /// Returns the error that no retry can clear; "": there is none.
    [[nodiscard]] std::string failure() const;

    // For work that is sent to another host (link_kind::work); the frame numbers are those of that host.
    /// True if frames can be sent: the link is up, and all frames of predecessors have left the ring on the
    /// other host.
    [[nodiscard]] bool takes_work();
    /// Assigns the number of the next frame, and begins the frame.
    [[nodiscard]] u64 next_number();
    /// The remote run whose ring assigns the numbers.
    [[nodiscard]] std::string remote_run() const;
    /// Returns the reason why this process's numbers are no longer valid; "": they are valid. Throws
    /// config_error for an error that no new process can clear.
    [[nodiscard]] std::string numbering_restarted() const;
    /// Returns the time in ns for which the link has been down; 0: it is up.
    [[nodiscard]] u64 away_ns() const;
    /// If the transport no longer reads the frame's memory, drops the frame from the list and returns true.
    /// Waits up to `ns`.
    [[nodiscard]] bool release(u64 ring_sequence, u64 ns);
    /// No frame follows. Returns true if the receiver has confirmed the end within `ns`.
    [[nodiscard]] bool end_here(u64 ns);

    /// True if the link's thread ran within the last second. If it is true, a waiting caller waits only for
    /// the receiver.
    [[nodiscard]] bool alive() const noexcept;

private:
    void run();
    void carry_out(transport& t, actions& todo);
    [[nodiscard]] bool over(u64 ring_sequence) const;
    void wake_released_waiters();
    void log_changes();

    void accepted(u32) override {}
    void closed(u32 connection, const std::string& why) override;
    void message_received(u32 connection, std::span<const std::byte> bytes) override;
    std::byte* frame_begins(u32, std::span<const std::byte>, u64, u64&) override { return nullptr; }
    void frame_received(u64, bool) override {}
    void frame_sent(u32 connection, u64 ring_sequence) override;

    link_settings where_;
    std::string from_;
    const device::context* gpu_;
    const u64 packed_bytes_;
    mutable std::mutex mutex_;                         ///< guards the following members
    std::condition_variable changed_;                  ///< for end() and release()
    u32 releasing_ = 0;                                ///< number of callers in release()
    std::map<u64, std::condition_variable*> waiting_;  ///< per awaited frame
    link_figures figures_;
    sending_side side_;
    std::unordered_map<u64, const std::byte*> data_;
    transport* transport_ = nullptr;
    std::string broken_;  ///< UCX could not be set up
    bool was_up_ = false;
    u64 given_ = 0;  ///< numbers assigned to work
    u64 log_due_ns_, down_since_ns_;
    std::atomic<u64> round_ns_;
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

}  // namespace carousel::hosts
