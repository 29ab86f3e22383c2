#pragma once
// The seat of a program at a port, over all its incarnations: the implementation of reader_port and
// writer_port. Used by one thread at a time, whose current GPU every call preserves (device::kept_thread).

#include <memory>
#include <string>
#include <vector>

#include <carousel/port.hpp>
#include "core/process.hpp"
#include "stages/sdk/port_attachment.hpp"
#include "stages/sdk/port_session.hpp"

namespace carousel {

class port_seat {
public:
    port_seat(std::shared_ptr<port_attachment> run, std::string stage, bool writes, port_options options);
    ~port_seat();
    port_seat(const port_seat&) = delete;
    port_seat& operator=(const port_seat&) = delete;

    /// Takes a frame. Returns false if no frame arrived in time, or if ended(). Throws config_error in a
    /// forked child, as commit(), end() and session() do.
    [[nodiscard]] bool next(u64 timeout_ns);
    /// Throws port_revoked and ends this incarnation; next() starts another one.
    void commit();
    /// Ends a writer's stream before the current frame, or before the next one; see writer_port::end().
    void end();
    /// Drops a writer's frame, whose number is then issued again.
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
