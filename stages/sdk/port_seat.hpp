#pragma once
// The place that a program has at a port, over all its lives: what reader_port and writer_port stand on. One
// thread at a time, which is on the same GPU behind each call as in front of it (device::kept_thread).

#include <memory>
#include <string>
#include <vector>

#include <carousel/port.hpp>
#include "core/owner_process.hpp"
#include "stages/sdk/port_attachment.hpp"
#include "stages/sdk/port_session.hpp"

namespace carousel {

class port_seat {
public:
    port_seat(std::shared_ptr<port_attachment> run, std::string stage, bool writes, port_options options);
    ~port_seat();
    port_seat(const port_seat&) = delete;
    port_seat& operator=(const port_seat&) = delete;

    /// A frame in hand. False: none in time, or ended(). Throws config_error in a forked child, as commit(),
    /// end() and session() do.
    [[nodiscard]] bool next(u64 timeout_ns);
    /// Throws port_revoked and ends this life: next() begins another.
    void commit();
    /// A writer's stream ends before the frame in hand, or before the next one; see writer_port::end().
    void end();
    /// A writer's frame is dropped: its number is given once more.
    void drop() noexcept;
    /// Of the frame in hand. Throws config_error: there is none.
    [[nodiscard]] port_session& session() const;

    [[nodiscard]] bool ended() const noexcept { return ended_; }
    [[nodiscard]] const std::string& stage() const noexcept { return stage_; }
    [[nodiscard]] const std::vector<ring::frame_format>& inputs() const noexcept { return inputs_; }
    [[nodiscard]] const std::vector<std::string>& input_names() const noexcept { return input_names_; }
    [[nodiscard]] const ring::frame_format& output() const noexcept { return output_; }
    [[nodiscard]] u64 patience_ns() const noexcept;
    [[noreturn]] void throw_wait_timeout() const;
    telemetry::frame_hash hash = std::nullopt;  ///< of the frame in hand

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
