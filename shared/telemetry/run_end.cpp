#include "telemetry/run_end.hpp"

#include "ring/words.hpp"
#include "shm/process_id.hpp"

namespace carousel::telemetry {
namespace {
constexpr u32 end_shift = 32;

constexpr u64 end_mark(u64 code) { return 0xE9D0ULL << 48U | (~code & 0xFFU) << 40U | code << end_shift; }
}  // namespace

// Makes one store, so an observer reads the run either without an end or with its complete exit code.
void note_end(shm::control_block& c, int exit_code) noexcept {
    const u64 pid = c.supervisor.load(std::memory_order_relaxed) & 0xFFFF'FFFFU;
    c.supervisor.store(pid | end_mark(static_cast<u8>(exit_code)), std::memory_order_release);
}

std::optional<int> end_of(const shm::control_block& c) noexcept {
    const u64 raw = ring::load(c.supervisor), code = raw >> end_shift & 0xFFU;
    if (raw >> end_shift != end_mark(code) >> end_shift) return std::nullopt;
    return static_cast<int>(code);
}

u32 living_stages(const shm::control_block& c) noexcept {
    u32 count = 0;
    for (const shm::incarnation& e : c.entry) {
        const ring::entry_word w = ring::entry_word::of(ring::load(e.identity));
        if (w.pid == 0 || (w.state != ring::entry_state::starting && w.state != ring::entry_state::live))
            continue;
        // A process that died between its claim and the store of its start time can't be distinguished from
        // another process with the same pid, so it is not counted.
        const shm::process_id id{static_cast<i32>(w.pid), ring::load(e.start_time)};
        count += id.start_time != 0 && shm::is_alive(id) ? 1 : 0;
    }
    return count;
}

}  // namespace carousel::telemetry
