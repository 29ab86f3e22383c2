// One incarnation of a port: its frame's metadata, capture time and used extents, and the end of a writer's
// stream.
#include <fmt/format.h>

#include "core/clock.hpp"
#include "core/crash_point.hpp"
#include "core/errors.hpp"
#include "frame/metadata.hpp"
#include "shm/doorbell.hpp"
#include "stages/sdk/port_session.hpp"

namespace carousel {

const std::byte* port_session::input_slot(std::size_t i) const {
    if (i >= inputs_.size())
        throw config_error(fmt::format("a port with {} inputs has no input {}", inputs_.size(), i));
    return inputs_[i].slot(job_.input[i].index);
}

const shm::used_extents* port_session::input_used(std::size_t i) const {
    const shm::used_extents& used = worker_->input(static_cast<u32>(i)).header(job_.input[i].index).used;
    return used.planes != 0 ? &used : nullptr;
}

std::span<const std::byte> port_session::read_metadata() {
    const auto of = [this](u32 i) {
        return ring::metadata_of(worker_->input(i).header(job_.input[i].index));
    };
    if (job_.inputs == 1) return of(0);
    u32 bytes = 0;
    for (u32 i = 0; i < job_.inputs; ++i) (void)ring::merge_metadata(joined_, bytes, of(i));
    return std::span(joined_).first(bytes);
}

std::span<const std::byte> port_session::parameter_bytes() const noexcept {
    return {job_.parameters, std::min(block_->block().parameters.bytes, shm::max_parameter_bytes)};
}

// The header belongs to this process from FILL to SUBMITTED, as in a stage's runner: after a revocation the
// slot is quarantined, and no process reads it.
shm::frame_header& port_session::header() const {
    return worker_->output(0).header_to_write(job_.output[0].index);
}

void port_session::reissue_frame() noexcept {
    shm::frame_header& h = header();
    h.metadata_bytes = 0;
    h.used.planes = 0;
    job_.set_capture_ns(0);
    touch();
}

// Performs E1 and E3 of ring/PROTOCOL.md, in the same way as a stage's runner. No clock runs during the wait
// for the supervisor's next poll, or for a supervisor. If this process is killed before that poll, the claim
// is void and the next program writes that frame number; after that poll END is known, and no program gets
// the number.
port_session::wait_result port_session::end_stream(u64 until_ns) {
    if ((worker_->stage().flags & shm::stage_flag::ends) == 0)
        throw config_error(
            fmt::format("port \"{0}\" ends its stream, but the pipeline file does not permit it: set `ends = "
                        "true` in the table of {0}",
                        worker_->stage().name));
    rest();
    queue_->drain();
    for (;;) {
        const u32 seen = shm::ticket(worker_->stage().doorbell);
        if (lost_.load(std::memory_order_acquire)) return wait_result::lost;
        const ring::outcome result = worker_->end_stream(job_);
        if (result == ring::outcome::revoked) return wait_result::lost;
        if (result == ring::outcome::ok) break;
        const u64 now = now_ns();
        if (now >= until_ns) return wait_result::nothing;
        shm::wait(worker_->stage().doorbell, seen, std::min(shm::max_sleep_ns, until_ns - now));
    }
    crash_here(crash_point::end_known);
    return worker_->give_back(job_) ? wait_result::closed : wait_result::lost;
}

}  // namespace carousel
