#include "telemetry/snapshot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/clock.hpp"
#include "core/enum_names.hpp"
#include "ring/link.hpp"
#include "ring/parameter_box.hpp"
#include "ring/participants.hpp"
#include "ring/words.hpp"
#include "shm/process_id.hpp"
#include "telemetry/histogram.hpp"

namespace carousel::telemetry {
namespace {

using ring::load;

u64 relaxed(const shm::word& w) noexcept { return w.load(std::memory_order_relaxed); }
template <u64 Damaged>
u64 relaxed(const shm::number_word<Damaged>& w) noexcept {
    return w.load(std::memory_order_relaxed);
}

template <std::size_t N>
void copy_name(const char (&from)[N], std::string& to) {
    to.assign(from, strnlen(from, N));
    // Replaces control characters that a faulty process may have left, so that tables keep their layout.
    for (char& c : to)
        if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) == 0x7F) c = '?';
}

u32 index_below(u32 index, u64 count) noexcept { return index < count ? index : shm::none; }

void copy_buckets(const shm::word* from, bucket_counts& to) noexcept {
    for (u32 k = 0; k < shm::latency_buckets; ++k) to[k] = relaxed(from[k]);
}

void read_stage(const shm::stage_block& b, u64 seats, u64 links, stage_view& out) {
    copy_name(b.name, out.name);
    out.inputs.clear();
    for (u32 i = 0; i < std::min(b.inputs, shm::max_inputs); ++i)
        if (b.input_link[i] < links) out.inputs.push_back(b.input_link[i]);
    out.outputs.clear();
    for (u32 o = 0; o < std::min(b.outputs, shm::max_outputs); ++o)
        if (b.output_link[o] < links) out.outputs.push_back(b.output_link[o]);
    out.first_seat = std::min<u32>(b.first_seat, static_cast<u32>(seats));
    out.seats = std::min<u32>(b.seats, static_cast<u32>(seats) - out.first_seat);
    out.in_flight = b.in_flight;
    out.flags = b.flags;
    out.source = b.source < shm::max_sources;
    const shm::stage_counters& k = b.counters;
    out.frames = relaxed(k.frames);
    out.tombstones = relaxed(k.tombstones);
    out.torn = relaxed(k.torn);
    out.helped = relaxed(k.helped);
    out.revoked_commits = relaxed(k.revoked_commits);
    out.time = read_time(k);
    out.in_flight_high_water = relaxed(k.in_flight_high_water);
    out.latency_max_ns = relaxed(k.latency_max_ns);
    out.end_to_end_max_ns = relaxed(k.end_to_end_max_ns);
    copy_buckets(k.latency, out.latency);
    copy_buckets(k.handover, out.handover);
    copy_buckets(k.end_to_end, out.end_to_end);
    copy_buckets(k.from_capture, out.from_capture);
}

void read_seat(const shm::control_block& c, u32 index, seat_view& out, std::vector<job_view>& jobs) {
    const shm::seat_block& b = c.seat[index];
    out = {};
    out.stage = index_below(b.stage, std::min(c.stages, shm::max_stages));
    out.instance = b.instance;
    out.paused = load(b.paused) != 0;
    const ring::seat_word w = ring::seat_word::of(load(b.current));  // a damaged word names no process
    out.epoch = w.epoch;
    out.turn = ring::epochs_between(b.first_epoch, w.epoch);
    out.entry = index_below(w.entry, shm::max_incarnations);
    if (out.entry != shm::none) {
        const shm::incarnation& e = c.entry[out.entry];
        const ring::entry_word id = ring::entry_word::of(load(e.identity));
        if (id.epoch == w.epoch) {  // if the epochs differ, the entry is being written for a successor
            out.pid = id.pid;
            out.state = id.state;
            out.heartbeat_ns = relaxed(e.heartbeat_ns);
            out.live_since_ns = relaxed(e.live_since_ns);
            out.cpu_ns = relaxed(e.cpu_ns);
            out.commits = relaxed(e.commits);
            out.device = e.device;
            out.depth = depth_view::of(relaxed(e.depth));
        }
    }
    const u32 first = std::min(b.first_job, shm::max_jobs), count = std::min(b.jobs, shm::max_jobs - first);
    for (u32 j = first; j < first + count && jobs.size() < shm::max_jobs; ++j) {
        const ring::job_state state = ring::job_word::of(load(c.job[j])).state;
        if (state != ring::job_state::open && state != ring::job_state::submitted) continue;
        ++out.jobs_in_flight;
        const shm::job_block& info = c.job_info[j];
        jobs.push_back({index, out.stage, state, relaxed(info.ring_sequence), relaxed(info.process_since_ns),
                        relaxed(info.submitted_since_ns)});
    }
}

// Reads, for each seat, the exit note of the last predecessor and the number of predecessors that are not
// proved to have ended.
void read_predecessors(const shm::control_block& c, std::vector<seat_view>& seats) {
    // Epochs wrap around, so the last predecessor is the entry whose epoch is the fewest steps before the
    // present one.
    std::array<u32, shm::max_seats> nearest;
    nearest.fill(~0U);
    for (const shm::incarnation& e : c.entry) {
        const ring::entry_word id = ring::entry_word::of(load(e.identity));
        if (id.state == ring::entry_state::unused || id.seat >= seats.size()) continue;
        seat_view& s = seats[id.seat];
        if (id.epoch == s.epoch || id.epoch == 0) continue;  // current process, or a standby without a seat
        if (id.state != ring::entry_state::fenced) ++s.unfenced;
        const u64 note = relaxed(e.exit_note);
        const u32 epochs_back = static_cast<u32>((s.epoch - id.epoch) & ring::epoch_mask);
        if (epochs_back <= ring::epoch_mask / 2 && epochs_back <= nearest[id.seat]) {
            nearest[id.seat] = epochs_back;
            s.exit_note = note;
        }
    }
}

/// `at`: the ring `l`.
void read_slot(const shm::control_block& c, const shm::link_block& l, const ring::link_ref& at, u32 k,
               u32 blocking, slot_view& out) {
    const u64 raw = load(l.slot[k]);
    out = {};
    out.word = ring::slot_word::of(raw);
    const ring::slot_state state = out.word.state;
    if (state != ring::slot_state::free && out.word.job < shm::max_jobs) {
        const u32 seat = c.job_info[out.word.job].seat;
        if (seat < shm::max_seats)
            out.stage = index_below(c.seat[seat].stage, std::min(c.stages, shm::max_stages));
    }
    out.phase = state == ring::slot_state::free    ? slot_phase::free
                : state == ring::slot_state::ready ? slot_phase::ready
                : state == ring::slot_state::fill  ? slot_phase::fill
                                                   : slot_phase::quarantined;
    // The header of a FREE slot still describes the last frame in the slot; the header of a slot that is
    // being filled may be accessed only by the slot's owner.
    if (state != ring::slot_state::ready && state != ring::slot_state::free) return;
    const shm::frame_header& h = c.frames[&l - c.link].header[k];
    out.ring_sequence = relaxed(h.ring_sequence);
    out.tombstone_stage = h.meta.tombstone_stage == shm::none
                              ? shm::none
                              : index_below(h.meta.tombstone_stage, std::min(c.stages, shm::max_stages));
    out.born_ns = h.meta.born_ns;
    out.claimed_ns = h.claimed_ns;
    out.submitted_ns = h.submitted_ns;
    out.committed_ns = relaxed(l.committed_ns[k]);
    bool done = blocking > 0;
    for (u32 g = 0; g < shm::max_groups && state == ring::slot_state::ready; ++g) {
        u64 exact = 0;
        const ring::lease_state lease = at.lease({k, out.word, out.ring_sequence}, g, exact).state;
        if (lease == ring::lease_state::leased) out.leased_by |= 1U << g;
        if (g < blocking && (lease == ring::lease_state::wait || lease == ring::lease_state::leased))
            done = false;
    }
    if (out.leased_by != 0)
        out.phase = slot_phase::leased;
    else if (done && state == ring::slot_state::ready)
        out.phase = slot_phase::done;
    // The slot changed while its header was read: the values may belong to two frames.
    if (load(l.slot[k]) != raw) {
        out.ring_sequence = out.born_ns = out.claimed_ns = out.submitted_ns = out.committed_ns = 0;
        if (state == ring::slot_state::ready) out.phase = slot_phase::free;
        out.leased_by = 0;
        out.tombstone_stage = shm::none;
    }
}

void read_groups(const shm::control_block& c, const shm::link_block& l, const ring::link_ref& at,
                 u32 blocking, link_view& out) {
    out.groups.clear();
    for (u32 g = 0; g < shm::max_groups; ++g) {
        const ring::group_word w = ring::group_word::of(load(l.group_state[g]));
        if (w.state == ring::group_state::absent || (g < shm::max_blocking && g >= blocking)) continue;
        group_view v;
        v.index = g;
        v.state = w.state;
        v.skipped = relaxed(l.skipped[g]);
        v.lease_since_ns = relaxed(l.lease_since_ns[g]);
        if (w.state != ring::group_state::latest)
            v.stage = index_below(l.group_stage[g], std::min(c.stages, shm::max_stages));
        if (w.state == ring::group_state::latest && w.entry < shm::max_incarnations) {
            const u32 seat = ring::entry_word::of(load(c.entry[w.entry].identity)).seat;
            if (seat < shm::max_seats)
                v.stage = index_below(c.seat[seat].stage, std::min(c.stages, shm::max_stages));
        }
        v.next = out.newest;
        for (u32 k = 0; k < out.slots.size(); ++k) {
            const slot_view& s = out.slots[k];
            if (s.word.state != ring::slot_state::ready || s.phase == slot_phase::free) continue;
            u64 exact = 0;
            const ring::lease_word lease = at.lease({k, s.word, s.ring_sequence}, g, exact);
            if (lease.state == ring::lease_state::leased) ++v.leases;
            if (lease.state != ring::lease_state::wait && lease.state != ring::lease_state::leased) continue;
            v.next = std::min(v.next, s.ring_sequence);
            if (w.state == ring::group_state::blocking) ++v.lag;
        }
        out.groups.push_back(v);
    }
}

void read_link(const shm::control_block& c, const shm::link_block& l, link_view& out) {
    copy_name(l.name, out.name);
    out.stage = index_below(l.stage, std::min(c.stages, shm::max_stages));
    out.window = std::min(l.window, shm::max_window);
    out.slot_bytes = l.slot_bytes;
    out.memory = l.memory;
    out.tail = load(l.tail);
    out.committed = relaxed(l.committed);
    const u32 blocking = std::min(l.blocking, shm::max_blocking);
    // The block is only read through this view, because it may be mapped read-only.
    const ring::link_ref at(const_cast<shm::control_block&>(c), static_cast<u32>(&l - c.link));
    out.slots.resize(std::min(l.slots, shm::max_slots));
    out.newest = out.tail;
    for (u32 k = 0; k < out.slots.size(); ++k) {
        read_slot(c, l, at, k, blocking, out.slots[k]);
        const slot_view& s = out.slots[k];
        if (s.word.state == ring::slot_state::ready && s.phase != slot_phase::free)
            out.newest = std::max(out.newest, s.ring_sequence + 1);
    }
    read_groups(c, l, at, blocking, out);
}

constexpr u32 end_shift = 32;

constexpr u64 end_mark(u64 code) { return 0xE9D0ULL << 48U | (~code & 0xFFU) << 40U | code << end_shift; }

}  // namespace

BOOST_DESCRIBE_ENUM(slot_phase, free, fill, ready, leased, done, quarantined)
const char* name_of(slot_phase p) noexcept { return enum_name(p); }

const char* name_of(ring::entry_state s) noexcept {
    switch (s) {
        case ring::entry_state::unused:
            return "absent";
        case ring::entry_state::starting:
            return "starting";
        case ring::entry_state::standby:
            return "standby";
        case ring::entry_state::live:
            return "running";
        case ring::entry_state::doomed:
            return "dying";
        case ring::entry_state::fenced:
            return "dead";
        case ring::entry_state::damaged:
            return "unreadable";
    }
    return "?";
}

const std::string& snapshot::stage_name(u32 stage) const noexcept {
    static const std::string unknown = "?";
    return stage < stages.size() ? stages[stage].name : unknown;
}

std::string snapshot::seat_label(u32 seat) const {
    if (seat >= seats.size()) return "?";
    const u32 stage = seats[seat].stage;
    if (stage < stages.size() && stages[stage].seats > 1)
        return fmt::format("{}.{}", stages[stage].name, seats[seat].instance);
    return stage_name(stage);
}

u32 link_view::ahead() const noexcept {
    return newest > tail ? static_cast<u32>(std::min<u64>(newest - tail, slots.size())) : 0;
}

const link_view* snapshot::fullest_output(u32 stage) const noexcept {
    const link_view* fullest = nullptr;
    if (stage >= stages.size()) return fullest;
    const auto room = [](const link_view& l) { return i64{l.window} - i64{l.ahead()}; };
    for (const u32 link : stages[stage].outputs)
        if (fullest == nullptr || room(links[link]) < room(*fullest)) fullest = &links[link];
    return fullest;
}

bool snapshot::ended() const noexcept {
    if (end == ring::end_unknown || end == ring::end_stopping) return false;
    return std::all_of(links.begin(), links.end(), [this](const link_view& l) { return l.tail >= end; });
}

void read_snapshot(const shm::control_block& c, snapshot& out) {
    out.taken_ns = now_ns();
    copy_name(c.run_id, out.run_id);
    copy_name(c.pipeline, out.pipeline);
    out.created_ns = c.created_ns;
    out.width = c.width;
    out.height = c.height;
    out.fps = c.fps;
    out.end = load(c.end);
    if (out.end == shm::no_number) out.end = ring::end_unknown;  // damaged, for a moment
    out.first_ring_sequence = c.first_ring_sequence;
    out.supervisor_heartbeat_ns = relaxed(c.supervisor_heartbeat_ns);
    out.supervisor_pid = static_cast<u32>(relaxed(c.supervisor));
    const shm::parameter_set& newest = ring::newest_parameters(c.parameters);
    out.parameter_bytes = std::min(c.parameters.bytes, shm::max_parameter_bytes);
    out.parameter_number = newest.number;
    out.parameter_from = newest.from;
    std::memcpy(out.parameters.data(), newest.value, out.parameters.size());
    out.stages.resize(std::min(c.stages, shm::max_stages));
    out.seats.resize(std::min(c.seats, shm::max_seats));
    out.links.resize(std::min(c.links, shm::max_links));
    for (u32 k = 0; k < out.stages.size(); ++k)
        read_stage(c.stage[k], out.seats.size(), out.links.size(), out.stages[k]);
    out.jobs.clear();
    for (u32 k = 0; k < out.seats.size(); ++k) read_seat(c, k, out.seats[k], out.jobs);
    read_predecessors(c, out.seats);
    for (u32 k = 0; k < out.links.size(); ++k) read_link(c, c.link[k], out.links[k]);
}

snapshot read_snapshot(const shm::control_block& c) {
    snapshot out;
    read_snapshot(c, out);
    return out;
}

f64 percentile_ms(const bucket_counts& b, f64 p) noexcept {
    u64 total = 0, seen = 0;
    for (const u64 n : b) total += n;
    if (total == 0) return 0;
    const f64 wanted = p * static_cast<f64>(total);
    for (u32 k = 0; k < shm::latency_buckets; ++k) {
        seen += b[k];
        if (seen > 0 && static_cast<f64>(seen) >= wanted) return static_cast<f64>(upper_ns(k)) / 1e6;
    }
    return static_cast<f64>(upper_ns(shm::latency_buckets - 1)) / 1e6;
}

std::string describe_span(u64 ns) {
    const f64 ms = static_cast<f64>(ns) / 1e6;
    return ms < 999.5 ? fmt::format("{:.{}f} ms", ms, ms < 9.95 ? 1 : 0) : fmt::format("{:.2f} s", ms / 1e3);
}

std::string describe_exit_note(u64 note) {
    const ring::exit_note decoded = ring::exit_note::of(note);
    if (!decoded.present) return "";
    if (decoded.signal == 0) return fmt::format("exit code {}", decoded.exit_code);
    const char* name = sigabbrev_np(decoded.signal);
    return name != nullptr ? fmt::format("signal {} (SIG{})", decoded.signal, name)
                           : fmt::format("signal {}", decoded.signal);
}

// Makes one store, so an observer reads either that the run has not ended, or the run's complete exit code.
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
