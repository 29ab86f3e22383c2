#pragma once
// Sink that sends its input to another host (carousel-send). Its settings: link_end.hpp, and
//   release   "committed": a frame is kept here until the other host has committed it; "durable": until each
//             sink there has it in its files, so that the loss of that host loses no frame ["committed"]
//   work      true: the frames are answers, for the process that asked for them (remote_stage.hpp) [false]
//   compress  "lz4" or "zstd": frames that become smaller cross the link compressed ["none"]
//   memory    "staged": frames on a GPU are copied into page-locked memory; "direct": UCX reads them on the
//             GPU, if it was built with CUDA. Frames on the CPU are sent in place ["staged"]
// process() computes the payload's hash in place, and copies a GPU's payload into page-locked memory unless
// UCX reads it on the GPU; a CPU's ring is sent in place, since the lease lasts until the commit. finish()
// passes the frame to the link and returns when the other host has committed the frame. So if a frame is
// committed here, the other host has it. Several frames are in flight at the same time (finish_threads); they
// are committed in order. While the link is down, frames wait and the ring fills: that does not count as a
// hang (frame::wait_for_link).

#include <memory>
#include <vector>

#include <carousel/stage.hpp>
#include "stages/hosts/link_end.hpp"
#include "stages/hosts/link_frame.hpp"
#include "stages/hosts/sender_link.hpp"

namespace carousel::stages {

class send_stage : public stage {
public:
    send_stage() = default;
    send_stage(const send_stage&) = delete;
    send_stage& operator=(const send_stage&) = delete;
    /// Called at the end of a run: reports the end of the stream to the other host.
    ~send_stage() override;
    [[nodiscard]] description configure(const configuration& with) override;
    void prepare(environment& env) override;
    [[nodiscard]] bool ready(u64 ring_sequence, u64 done_below) override;
    void process(frame& f) override;
    [[nodiscard]] bool commits_on_host() const override { return true; }
    void finish(frame& f) override;
    void committed(u64 ring_sequence) override { next_ = ring_sequence + 1; }

private:
    [[nodiscard]] const std::byte* pack(hosts::frame_message& m, const std::byte* data, u32 lane);

    hosts::link_end end_;
    std::string ring_;
    bool by_durable_ = false, work_ = false, direct_ = false;
    hosts::packing packing_ = hosts::packing::none;
    std::vector<std::vector<std::byte>> packed_;  ///< per lane
    hosts::outgoing_payload payload_;
    u64 last_ = 0, next_ = 0;
    std::unique_ptr<hosts::sender_link> link_;
};

}  // namespace carousel::stages
