#pragma once
// The implementation of reader_port and writer_port: the seat that a program has at a port. The object exists
// over all incarnations of the program. Used by one thread at a time, whose current GPU every call preserves
// (device::kept_thread).

#include <carousel/port.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "control/client.hpp"
#include "control/mapped_ring.hpp"
#include "core/process.hpp"
#include "stages/sdk/port_session.hpp"

namespace carousel {

// Shared by the ports of one open run: the observed run (control/client.hpp) and the devices on which
// frames are delivered. One thread at a time.

/// Throws config_error in a forked child of the process that opened the port.
void require_port_owner(const owner_process& owner, const std::string& port);

class port_attachment {
public:
    port_attachment(const std::string& name, open_options options);

    /// Determines which supervisor controls the run, whether the run has ended, and whether the run has a new
    /// control block. Polls at most ten times per second.
    void poll();
    /// Throws config_error in a forked child.
    void require_owner() const;
    [[nodiscard]] bool ended() const noexcept { return ended_; }
    [[nodiscard]] const std::string& ending() const noexcept { return ending_; }
    [[nodiscard]] const run::record& run() const noexcept { return observer_ ? observer_->run() : found_; }
    /// Null after the run has ended. Throws shm_error if the run's shared memory has no name here, for
    /// example in a container that has only the run's runtime directory.
    [[nodiscard]] const std::shared_ptr<const run::mapped_block>& block() { return observed().mapped(); }
    [[nodiscard]] const open_options& options() const noexcept { return options_; }
    [[nodiscard]] std::vector<std::string> stages();
    [[nodiscard]] f64 fps() { return observed().block().fps; }

    /// Returns the context of the device that `id` identifies. The supervisor identifies devices in the same
    /// way.
    [[nodiscard]] const std::shared_ptr<device::context>& device_named_by(const device::device_id& id);
    /// The device on which this ring's frames are delivered. `in_host_memory`: true if the frames are
    /// delivered in host memory.
    [[nodiscard]] std::shared_ptr<device::context> device_for(const run::mapped_ring& ring,
                                                              bool& in_host_memory);
    /// Returns the reason why no frame arrives, as far as the run's block and record show it: one clause for
    /// a message.
    [[nodiscard]] std::string stall_reason() const;

private:
    [[nodiscard]] run::observer& observed();

    open_options options_;
    owner_process owner_;
    run::record found_;
    std::unique_ptr<run::observer> observer_;  ///< null if the run's block can't be opened by name
    std::vector<std::pair<device::device_id, std::shared_ptr<device::context>>> devices_;
    bool ended_ = false;
    std::string ending_;
    u64 next_poll_ns_ = 0, over_since_ns_ = 0;
};

class port_seat {
public:
    port_seat(std::shared_ptr<port_attachment> run, std::string stage, bool writes, port_options options);
    ~port_seat();
    port_seat(const port_seat&) = delete;
    port_seat& operator=(const port_seat&) = delete;

    /// Takes a frame. Returns false if no frame arrived in time, or if ended(). Throws config_error in a
    /// forked child, as commit(), end() and session() do.
    [[nodiscard]] bool next(u64 timeout_ns);
    /// Commits the current frame. If the seat was given to another incarnation, throws port_revoked and ends
    /// this incarnation; next() then starts a new one.
    void commit();
    /// Ends a writer's stream before the current frame, or before the next one; see writer_port::end().
    void end();
    /// Drops a writer's frame; after this the frame's number is issued again.
    void drop() noexcept;
    /// The session of the current frame. Throws config_error if there is none.
    [[nodiscard]] port_session& session() const;

    [[nodiscard]] bool ended() const noexcept { return ended_; }
    [[nodiscard]] const std::string& stage() const noexcept { return stage_; }
    [[nodiscard]] const std::vector<ring::frame_format>& inputs() const noexcept { return inputs_; }
    [[nodiscard]] const std::vector<std::string>& input_names() const noexcept { return input_names_; }
    [[nodiscard]] const ring::frame_format& output() const noexcept { return output_; }
    [[nodiscard]] u64 patience_ns() const noexcept;
    [[noreturn]] void throw_wait_timeout() const;
    telemetry::frame_hash hash = std::nullopt;  ///< of the current frame

private:
    void require_owner() const;
    [[nodiscard]] bool connect();
    [[nodiscard]] bool reconnect(u64 until_ns);
    [[nodiscard]] bool has_run_ended(u64 now);
    void check_planes() const;
    [[nodiscard]] bool may_use_gpu() const noexcept;

    std::shared_ptr<port_attachment> to_;
    std::string stage_, folder_, run_id_;
    bool writes_;
    port_options options_;
    std::vector<ring::frame_format> inputs_;
    std::vector<std::string> input_names_;
    ring::frame_format output_;
    owned_ptr<port_session> session_;
    bool has_frame_ = false, ended_ = false;
    owner_process owner_;
    u64 unsupervised_since_ns_ = 0;
};

}  // namespace carousel
