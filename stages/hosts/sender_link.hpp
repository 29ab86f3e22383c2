#pragma once
// A sending_side with its transport and its thread. Any thread may call; the thread that talks to UCX is one
// of its own, and lives as long as the object.

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>

#include "device/backend.hpp"
#include "stages/hosts/link/sending_side.hpp"
#include "stages/hosts/link_figures.hpp"
#include "stages/hosts/link_settings.hpp"
#include "stages/hosts/ucx/transport.hpp"

namespace carousel::hosts {

class sender_link final : private transport::events {
public:
    /// `gpu`: whose memory the frames lie in, which UCX is to read there; null: in memory that the CPU reads.
    sender_link(const link_settings& where, hello own_hello, token_file token, u64 first_epoch,
                std::string figures_path, const device::context* gpu = nullptr);
    /// Tells nothing: see end().
    ~sender_link() override;

    void begin(u64 ring_sequence);
    /// `data` stays until wait_released() has said true.
    void offer(const frame_message& m, const std::byte* data);
    /// True: the far side has committed it, and its memory is free. Waits `ns` at most. Throws config_error
    /// for what no retry mends.
    [[nodiscard]] bool wait_released(u64 ring_sequence, u64 ns);
    /// No frame follows. True: the far side knows, within `ns`.
    [[nodiscard]] bool end(u64 ring_sequence, u64 ns);
    /// What no retry mends; "": nothing.
    [[nodiscard]] std::string failure() const;

    // Of work for another host (link_kind::work), whose numbers are that host's.
    /// Frames may go: the link is up, and what predecessors have sent has left the ring there.
    [[nodiscard]] bool takes_work();
    /// The number of the next frame, which is begun.
    [[nodiscard]] u64 next_number();
    /// Whose numbers they are.
    [[nodiscard]] std::string remote_run() const;
    /// Why this process's numbers count no more; "": they do. Throws config_error for what no process mends.
    [[nodiscard]] std::string numbering_restarted() const;
    /// For how long the link has been away; 0: it is up.
    [[nodiscard]] u64 away_ns() const;
    /// True: nobody reads the frame's memory any more, and it is forgotten. Waits `ns` at most.
    [[nodiscard]] bool release(u64 ring_sequence, u64 ns);
    /// No frame follows. True: the far side knows, within `ns`.
    [[nodiscard]] bool end_here(u64 ns);

    /// Its thread has gone round within the last second: whoever waits for the far side waits for nothing
    /// else.
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
    mutable std::mutex mutex_;                         ///< guards what follows
    std::condition_variable changed_;                  ///< of end() and release()
    u32 releasing_ = 0;                                ///< who waits in release()
    std::map<u64, std::condition_variable*> waiting_;  ///< of each frame that somebody waits for
    link_figures figures_;
    sending_side side_;
    std::unordered_map<u64, const std::byte*> data_;
    transport* transport_ = nullptr;
    std::string broken_;  ///< UCX could not be set up
    bool was_up_ = false;
    u64 given_ = 0;  ///< numbers of work
    u64 log_due_ns_, down_since_ns_;
    std::atomic<u64> round_ns_;
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

}  // namespace carousel::hosts
