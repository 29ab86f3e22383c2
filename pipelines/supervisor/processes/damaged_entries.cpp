#include "supervisor/processes/damaged_entries.hpp"

#include <fmt/format.h>

#include <csignal>

#include "ring/check/block_check.hpp"
#include "ring/check/repair.hpp"
#include "shm/process_id.hpp"

namespace carousel::supervisor {
namespace {

std::vector<ring::known_process> recorded_processes(const process_records& remembered) {
    std::vector<ring::known_process> recorded;
    for (u32 seat = 0; seat < remembered.size(); ++seat)
        for (const process_record& p : remembered[seat])
            recorded.push_back({seat, p.entry, p.epoch, static_cast<u32>(p.pid), false, p.epoch == 0,
                                p.was_ready, p.start_time});
    return recorded;
}

/// Kills each process that the entry may have named: the pid found in the entry, and each pid that differs
/// from it by one bit.
void end_unknown_process(const shm::incarnation& e, const std::string& run_id) {
    constexpr unsigned pid_from = 40;
    const u64 raw = ring::load(e.identity);
    for (unsigned bit = pid_from - 1; bit < 64; ++bit) {
        const auto pid = static_cast<i32>((bit < pid_from ? raw : raw ^ u64{1} << bit) >> pid_from);
        const shm::unique_fd fd = shm::open_member({pid, ring::load(e.start_time)}, run_id);
        if (fd) shm::signal_pidfd(fd.get(), SIGKILL);
    }
}

}  // namespace

// One CAS per entry: if this supervisor dies here, the next one repairs the remaining entries.
void repair_adopted_entries(process_table& t, const process_records& remembered, const std::string& run_id) {
    for (u32 k = 0; k < shm::max_incarnations; ++k) {
        shm::incarnation& e = t.c->entry[k];
        const u64 raw = ring::load(e.identity);
        if (ring::intact(raw)) continue;
        const auto is_ours = [&](u32 pid) {
            return bool(shm::open_member({static_cast<i32>(pid), ring::load(e.start_time)}, run_id));
        };
        const auto value = ring::adopted_entry(*t.c, k, {recorded_processes(remembered), is_ours});
        if (!value) {
            t.log_line(
                fmt::format("entry {} was damaged while no supervisor ran ({:#x}), and its owner can't be "
                            "determined: its process is ended, and the run restarts",
                            k, raw));
            end_unknown_process(e, run_id);
            continue;
        }
        if (!ring::write_back(*t.c, *t.c, {{ring::word_kind::entry, k}, raw}, *value)) continue;
        const ring::entry_word w = ring::entry_word::of(*value);
        t.log_line(
            w.state == ring::entry_state::unused
                ? fmt::format("entry {} was damaged while no supervisor ran ({:#x}): it has no owner", k, raw)
                : fmt::format("entry {} was damaged while no supervisor ran ({:#x}): repaired, it belongs to "
                              "{} (pid {})",
                              k, raw, ring::seat_name(*t.c, w.seat), w.pid));
    }
}

// Idempotent: if this supervisor dies here, the next one repairs the remaining times.
void repair_start_times(process_table& t, const process_records& remembered) {
    ring::known_run known;
    known.processes = recorded_processes(remembered);
    for (const std::string& word : ring::repair_start_times(*t.c, *t.made, known))
        t.log_line(fmt::format("{} was damaged while no supervisor ran: repaired", word));
}

}  // namespace carousel::supervisor
