#pragma once
// One incarnation of a port's program: from the hello until it has released all memory of the run. In the
// shared words, an incarnation is a process of the stage (ring/worker.hpp), but unlike a stage process it is
// never killed by the run.
//
// Threads: the program's own thread begins and commits, one frame at a time. The heartbeat thread stamps the
// heartbeat and polls the supervisor's socket. If the run stops while the program of a source is busy
// elsewhere, this thread also stores the acknowledgement of the stop. A mutex of this process ensures that
// this store and begin() never run at the same time.
//
// What a crash leaves in shared memory: the words that ring/worker.hpp describes. The kernel closes the
// socket (which the supervisor detects as a death), signals the pidfd and releases the lock (the fence:
// supervisor/processes/port_seats.hpp). An incarnation leaves in this order: it enqueues no further work,
// removes its mappings, releases the lock, and sends "left".
//
// A forked child has a copy of the mappings and nothing else: its copy of a session is never destroyed
// (port_seat), and its descriptors are closed by fork() (shm/process_fd.hpp). So the lock and the connection
// end with the process that holds the seat. The fence does not cover the mappings of a forked child, whether
// the supervisor watches the lock or the pidfd. But a child can write to a ring only through pointers that it
// is not permitted to use.

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/errors.hpp"
#include "core/running_time.hpp"
#include "device/backend.hpp"
#include "frame/frame_format.hpp"
#include "ledger/ledger.hpp"
#include "ring/worker.hpp"
#include "session/attach.hpp"
#include "session/status_words.hpp"
#include "shm/fd_socket.hpp"
#include "shm/process_fd.hpp"
#include "shm/segment.hpp"

namespace carousel {

class port_session {
public:
    using device_source = std::function<device::context&(const device::device_id&)>;
    /// Joins the run. Throws session::seat_taken, config_error (refused permanently), shm_error (no reply),
    /// or device_error.
    port_session(const std::string& folder, const std::string& stage, bool writes,
                 const device_source& device);
    ~port_session();
    port_session(const port_session&) = delete;
    port_session& operator=(const port_session&) = delete;

    enum class wait_result : u8 {
        frame,
        nothing,  ///< none until the timeout
        closed,   ///< every frame of the run has been handled by this port
        lost,     ///< revoked, or the supervisor has ended: this incarnation is over
    };
    [[nodiscard]] wait_result begin(u64 until_ns);
    /// Issues a writer's frame again: clears its metadata and restarts its clock.
    void reissue_frame() noexcept;
    /// Ends the stream before the current frame. Returns `closed` after the supervisor has accepted the
    /// claim; `lost` as above; `nothing` if it was not accepted in time. After `nothing` this incarnation
    /// must end, because its frame is not written. Throws config_error if this source is not permitted to
    /// end its stream.
    [[nodiscard]] wait_result end_stream(u64 until_ns);
    /// Stops the clock of a writer's frame that waits to be issued again.
    void rest() noexcept;
    /// Returns false if revoked: the frame belongs to another incarnation. Throws output_error, cuda_error.
    /// After output_error it may be called again, even if the frame is committed and only its mark in the
    /// ledger is missing.
    [[nodiscard]] bool commit(const telemetry::frame_hash& hash);

    [[nodiscard]] const ring::job& job() const noexcept { return job_; }
    [[nodiscard]] device::queue& queue() const noexcept { return *queue_; }
    [[nodiscard]] device::device_kind where() const noexcept { return context_->kind(); }
    [[nodiscard]] const std::vector<ring::frame_format>& inputs() const noexcept { return input_formats_; }
    [[nodiscard]] const ring::frame_format& output() const noexcept { return output_format_; }
    [[nodiscard]] const std::vector<std::string>& input_names() const noexcept { return input_names_; }
    [[nodiscard]] const std::byte* input_slot(std::size_t i) const;
    /// Returns the used extents of an input's planes; null: all planes are used as a whole.
    [[nodiscard]] const shm::used_extents* input_used(std::size_t i) const;
    /// Returns the inputs' metadata: for one input its own bytes, for several a merged copy that the next
    /// frame overwrites.
    [[nodiscard]] std::span<const std::byte> read_metadata();
    [[nodiscard]] std::span<const std::byte> parameter_bytes() const noexcept;
    /// Returns the header of a writer's frame, which is owned by this process until its commit.
    [[nodiscard]] shm::frame_header& header() const;
    void set_capture_ns(u64 ns) noexcept { job_.set_capture_ns(ns); }
    [[nodiscard]] std::byte* output_slot() const;

private:
    void join(const std::string& folder, const std::string& stage, bool writes, const device_source& device);
    [[nodiscard]] session::attached introduce(const std::string& folder, const std::string& stage,
                                              bool writes);
    void take_lock(const std::string& folder);
    void publish_guard();
    void run_heartbeat();
    void touch() noexcept;
    void check_status(device::status_state state);
    [[nodiscard]] bool finish(const telemetry::frame_hash& hash);
    void disconnect() noexcept;
    [[nodiscard]] shm::incarnation& entry() const noexcept {
        return block_->block().entry[incarnation_.entry];
    }
    void find_delivered(u64 first);
    [[nodiscard]] bool is_delivered() const noexcept {
        return job_.ring_sequence < delivered_below_ ||
               std::binary_search(delivered_beyond_.begin(), delivered_beyond_.end(), job_.ring_sequence);
    }
    void note_delivered();
    [[nodiscard]] bool has_all_frames() const;
    [[nodiscard]] bool is_end_certain(u64 now);
    [[nodiscard]] u32 committer() const noexcept {
        return telemetry::ledger_committer(incarnation_.seat, incarnation_.epoch);
    }

    shm::process_fd socket_, lock_, stop_;  ///< a forked child has none of these
    std::string lock_path_;
    ring::incarnation_id incarnation_;
    std::unique_ptr<shm::segment> block_;
    std::unique_ptr<ring::worker> worker_;
    device::context* context_ = nullptr;
    std::unique_ptr<device::queue> queue_;
    std::vector<session::mapped_link> inputs_, outputs_;
    std::vector<ring::frame_format> input_formats_;
    std::vector<std::string> input_names_;
    ring::frame_format output_format_;
    shm::word event_word_{0};
    std::unique_ptr<device::event> event_;
    std::unique_ptr<session::status_words> status_;
    std::unique_ptr<telemetry::ledger_writer> ledger_;  ///< only for a reader
    ring::job job_;
    bool committed_ = false;  ///< the word of job_ is COMMITTED; the steps after the commit may be repeated
    /// job_ is a frame that the program does not get (a tombstone, or is_delivered()), not committed yet
    bool passes_ = false;
    std::array<std::byte, shm::max_metadata_bytes> joined_{};  ///< metadata of several inputs
    /// Frames below are in the ledger, and a rebuild of the run makes them again for other sinks: they are
    /// completed, and not given to the program again.
    u64 delivered_below_ = 0;
    bool has_claim_ = true;              ///< false: a port that frames may pass (vacant = "skip")
    std::vector<u64> delivered_beyond_;  ///< further frames in the ledger, in ascending order
    std::string ledger_path_;            ///< "": a writer
    u64 first_ = 0;                      ///< the first frame of the run
    u64 closed_since_ns_ = 0;            ///< since when the words show the end of the stream; 0: they do not
    std::mutex begins_;
    std::atomic<bool> lost_{false};
    running_time running_;  ///< updated by the heartbeat thread
    std::thread heartbeat_thread_;
};

}  // namespace carousel
