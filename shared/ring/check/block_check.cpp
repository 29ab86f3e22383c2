#include "ring/check/block_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "ring/check/repair.hpp"
#include "ring/parameter_box.hpp"
#include "ring/stream_end.hpp"

namespace carousel::ring {
namespace {

/// Collects findings, up to a limit: a block that is damaged all over must not produce thousands of lines.
class findings {
public:
    void add(std::string word, std::string what) {
        if (all_.size() < most_findings) all_.push_back({std::move(word), std::move(what)});
    }
    template <typename T>
    void same(const T& now, const T& then, const std::string& object, const char* field) {
        if (now != then)
            add(fmt::format("{}: {}", object, field),
                fmt::format("is {}, but was {} at the start", now, then));
    }
    template <std::size_t N>
    void same_name(const char (&now)[N], const char (&then)[N], const std::string& object,
                   const char* field) {
        if (std::memcmp(now, then, N) != 0)
            add(fmt::format("{}: {}", object, field),
                fmt::format("is no longer \"{}\"", std::string(then, strnlen(then, N))));
    }
    template <std::size_t N>
    void same_bytes(const std::byte (&now)[N], const std::byte (&then)[N], const std::string& object,
                    const char* field) {
        if (std::memcmp(now, then, N) != 0)
            add(fmt::format("{}: {}", object, field), "has changed since the start");
    }
    [[nodiscard]] std::vector<finding> take() { return std::move(all_); }

private:
    std::vector<finding> all_;
};

void check_head(findings& f, const shm::control_block& c, const shm::control_block& made) {
    const std::string object = "the block's head";
    if (load(c.magic) != shm::control_magic)
        f.add(object + ": magic", "is not a control block's: no process can attach any more");
    f.same(c.version, made.version, object, "version");
    f.same(c.uid, made.uid, object, "uid");
    f.same(c.bytes, made.bytes, object, "bytes");
    f.same_name(c.run_id, made.run_id, object, "run_id");
    f.same_name(c.pipeline, made.pipeline, object, "pipeline");
    f.same(c.created_ns, made.created_ns, object, "created_ns");
    f.same(c.stages, made.stages, object, "stages");
    f.same(c.seats, made.seats, object, "seats");
    f.same(c.links, made.links, object, "links");
    f.same(c.sources, made.sources, object, "sources");
    f.same(c.jobs, made.jobs, object, "jobs");
    f.same(c.assets, made.assets, object, "assets");
    f.same(c.width, made.width, object, "width");
    f.same(c.height, made.height, object, "height");
    f.same(c.frame_timeout_ns, made.frame_timeout_ns, object, "frame_timeout_ns");
    f.same(c.latest_lease_ns, made.latest_lease_ns, object, "latest_lease_ns");
    f.same(std::bit_cast<u64>(c.fps), std::bit_cast<u64>(made.fps), object, "fps (as bits)");
    f.same(c.first_ring_sequence, made.first_ring_sequence, object, "first_ring_sequence");
}

void check_stage(findings& f, const shm::stage_block& now, const shm::stage_block& then) {
    const std::string object = "stage " + std::string(then.name);
    f.same_name(now.name, then.name, object, "name");
    f.same(now.inputs, then.inputs, object, "inputs");
    for (u32 i = 0; i < shm::max_inputs; ++i) {
        f.same(now.input_link[i], then.input_link[i], object, "input_link");
        f.same(now.input_group[i], then.input_group[i], object, "input_group");
    }
    f.same(now.sampled_inputs, then.sampled_inputs, object, "sampled_inputs");
    for (u32 i = 0; i < shm::max_sampled_inputs; ++i)
        f.same(now.sampled_link[i], then.sampled_link[i], object, "sampled_link");
    f.same(now.outputs, then.outputs, object, "outputs");
    for (u32 i = 0; i < shm::max_outputs; ++i)
        f.same(now.output_link[i], then.output_link[i], object, "output_link");
    f.same(now.source, then.source, object, "source");
    f.same(now.first_seat, then.first_seat, object, "first_seat");
    f.same(now.seats, then.seats, object, "seats");
    f.same(now.in_flight, then.in_flight, object, "in_flight");
    f.same(now.max_attempts, then.max_attempts, object, "max_attempts");
    f.same(now.flags, then.flags, object, "flags");
    f.same(now.frame_timeout_ns, then.frame_timeout_ns, object, "frame_timeout_ns");
}

void check_link(findings& f, const shm::link_block& now, const shm::link_block& then) {
    const std::string object = "ring of " + std::string(then.name);
    f.same_name(now.name, then.name, object, "name");
    f.same(now.stage, then.stage, object, "stage");
    f.same(now.slots, then.slots, object, "slots");
    f.same(now.window, then.window, object, "window");
    f.same(now.blocking, then.blocking, object, "blocking");
    for (u32 g = 0; g < shm::max_blocking; ++g)
        f.same(now.group_stage[g], then.group_stage[g], object, "group_stage");
    f.same(now.slot_bytes, then.slot_bytes, object, "slot_bytes");
    f.same(now.memory, then.memory, object, "memory");
    f.same(now.memory_ready, then.memory_ready, object, "memory_ready");
    f.same_bytes(now.ipc_handle, then.ipc_handle, object, "ipc_handle");
}

void check_sets(findings& f, const shm::parameter_box& now, const shm::parameter_box& then) {
    f.same(now.bytes, then.bytes, "parameters", "bytes");
    for (u32 k = 0; k < shm::max_parameter_sets; ++k) {
        const std::string object = fmt::format("parameters: set {}", k);
        f.same(now.set[k].from, then.set[k].from, object, "from");
        f.same(now.set[k].number, then.set[k].number, object, "number");
        f.same_bytes(now.set[k].value, then.set[k].value, object, "value");
    }
}

// A source moves the horizon only past a number that it has leased, and it leases no number beyond its
// window.
void check_parameters(findings& f, const shm::control_block& c, const shm::control_block& made) {
    const u64 raw = load(c.parameters.state);
    if (!intact(raw)) return;  // check_parity
    const parameter_state is = parameter_state::of(raw),
                          was = parameter_state::of(load(made.parameters.state));
    if (is.sets != was.sets)
        f.add("parameters: state",
              fmt::format("counts {} sets, but the supervisor has published {}", is.sets, was.sets));
    if (is.horizon < was.horizon)
        f.add("parameters: horizon",
              fmt::format("is {}, it was {} before and only grows", is.horizon, was.horizon));
    u64 reach = 0;
    for (u32 k = 0; k < std::min(made.sources, shm::max_sources); ++k) {
        const u32 link = std::min(made.source[k].link, shm::max_links - 1);
        const u64 tail = load(c.link[link].tail.raw());  // read after the state, since tails only grow
        if (!intact(tail)) return;                       // a damaged tail is not a bound: see check_parity
        reach = std::max(reach, shm::tail_word::unpack(tail) + made.link[link].window);
    }
    if (made.sources > 0 && is.horizon > reach)
        f.add("parameters: horizon",
              fmt::format("is {}, no source can have leased a number from {} on", is.horizon, reach));
}

// A claim was made for a number that was leased to a job of a source that may end its stream. The claim may
// no longer be valid.
void check_claims(findings& f, const shm::control_block& c, const shm::control_block& made) {
    for (u32 k = 0; k < std::min(made.sources, shm::max_sources); ++k) {
        const u64 raw = load(c.source[k].ended);  // read before the tail, which only grows
        if (raw == no_claim || !intact(raw)) continue;
        const u32 stage = std::min(made.source[k].stage, shm::max_stages - 1),
                  link = std::min(made.source[k].link, shm::max_links - 1);
        const std::string object = fmt::format("source {}: ended", stage_name(made, stage));
        const u64 tail = load(c.link[link].tail.raw());
        if (!intact(tail)) continue;  // check_parity
        const end_claim claim = end_claim::of(raw);
        const u32 seat =
            claim.job < std::min(made.jobs, shm::max_jobs) ? made.job_info[claim.job].seat : shm::none;
        const u64 reach = shm::tail_word::unpack(tail) + made.link[link].window;
        if ((made.stage[stage].flags & shm::stage_flag::ends) == 0)
            f.add(object,
                  fmt::format("names frame {}, but this source never ends its stream", claim.ring_sequence));
        else if (seat >= shm::max_seats || made.seat[seat].stage != stage)
            f.add(object,
                  fmt::format("is by job {}, which is not a job of {}", claim.job, stage_name(made, stage)));
        else if (claim.ring_sequence < made.first_ring_sequence || claim.ring_sequence >= reach)
            f.add(object, fmt::format("names frame {}, it can have leased those from {} to {}",
                                      claim.ring_sequence, made.first_ring_sequence, reach - 1));
    }
}

void check_entries(findings& f, const shm::control_block& c, const shm::control_block& made,
                   const known_run& known) {
    for (const known_process& l : known.processes) {
        if (l.entry >= shm::max_incarnations || l.seat >= std::min(made.seats, shm::max_seats)) continue;
        const entry_word w = entry_word::of(load(c.entry[l.entry].identity));
        if (w.state == entry_state::damaged) continue;  // check_parity
        const std::string object = fmt::format("entry {} ({})", l.entry, seat_name(made, l.seat));
        if (w.seat != l.seat || w.epoch != l.epoch)
            f.add(object + ": identity",
                  fmt::format("names seat {} and epoch {}, the process there has seat {} and epoch {}",
                              w.seat, w.epoch, l.seat, l.epoch));
        else if (w.pid != 0 && l.pid != 0 && w.pid != l.pid)
            f.add(object + ": identity", fmt::format("names pid {}, the process there is {}", w.pid, l.pid));
        else if (l.standby ? w.state != entry_state::standby
                           : l.current && w.state != entry_state::starting && w.state != entry_state::live)
            f.add(object + ": identity",
                  fmt::format("has state {}, but its process works", static_cast<u32>(w.state)));
        if (!l.current) continue;
        if (!intact(load(c.seat[l.seat].current))) continue;
        const seat_word sits = seat_word::of(load(c.seat[l.seat].current));
        if (sits != seat_word{l.epoch, l.entry})
            f.add(fmt::format("seat of {}: current", seat_name(made, l.seat)),
                  fmt::format("names epoch {} in entry {}, but the seat has epoch {} in entry {}", sits.epoch,
                              static_cast<i64>(sits.entry), l.epoch, l.entry));
    }
}

// check_parity(): which words are damaged by one bit, and the name of each.

std::string ring_name(const shm::control_block& made, u32 link) {
    return fmt::format("ring of {}", made.link[std::min(link, shm::max_links - 1)].name);
}
std::string job_name(const shm::control_block& made, u32 job) {
    return fmt::format("job {} ({})", job,
                       seat_name(made, made.job_info[std::min(job, shm::max_jobs - 1)].seat));
}
std::string source_name(const shm::control_block& made, u32 source) {
    return fmt::format("source {}",
                       stage_name(made, made.source[std::min(source, shm::max_sources - 1)].stage));
}

}  // namespace

std::vector<finding> check_static(const shm::control_block& c, const shm::control_block& made) {
    findings f;
    check_head(f, c, made);
    for (u32 k = 0; k < std::min(made.stages, shm::max_stages); ++k)
        check_stage(f, c.stage[k], made.stage[k]);
    for (u32 k = 0; k < std::min(made.links, shm::max_links); ++k) check_link(f, c.link[k], made.link[k]);
    for (u32 k = 0; k < std::min(made.seats, shm::max_seats); ++k) {
        const std::string object = "seat of " + seat_name(made, k);
        f.same(c.seat[k].stage, made.seat[k].stage, object, "stage");
        f.same(c.seat[k].instance, made.seat[k].instance, object, "instance");
        f.same(c.seat[k].first_job, made.seat[k].first_job, object, "first_job");
        f.same(c.seat[k].jobs, made.seat[k].jobs, object, "jobs");
        f.same(c.seat[k].first_epoch, made.seat[k].first_epoch, object, "first_epoch");
    }
    for (u32 k = 0; k < std::min(made.sources, shm::max_sources); ++k) {
        const std::string object = "source " + stage_name(made, made.source[k].stage);
        f.same(c.source[k].stage, made.source[k].stage, object, "stage");
        f.same(c.source[k].link, made.source[k].link, object, "link");
        f.same(c.source[k].first_lap, made.source[k].first_lap, object, "first_lap");
    }
    for (u32 k = 0; k < std::min(made.jobs, shm::max_jobs); ++k)
        f.same(c.job_info[k].seat, made.job_info[k].seat,
               fmt::format("job {} ({})", k, seat_name(made, made.job_info[k].seat)), "seat");
    for (u32 k = 0; k < std::min(made.assets, shm::max_assets); ++k) {
        const std::string object = "asset " + std::string(made.asset[k].name);
        f.same_name(c.asset[k].name, made.asset[k].name, object, "name");
        f.same(c.asset[k].bytes, made.asset[k].bytes, object, "bytes");
        f.same(c.asset[k].maker_stage, made.asset[k].maker_stage, object, "maker_stage");
        f.same(c.asset[k].memory, made.asset[k].memory, object, "memory");
        f.same_bytes(c.asset[k].ipc_handle, made.asset[k].ipc_handle, object, "ipc_handle");
    }
    check_sets(f, c.parameters, made.parameters);
    return f.take();
}

std::vector<finding> check_known(const shm::control_block& c, const shm::control_block& made,
                                 const known_run& known) {
    findings f;
    const auto end_text = [](u64 end) {
        return end == end_unknown    ? std::string("unknown")
               : end == end_stopping ? "stopping"
                                     : fmt::format("{}", end);
    };
    if (const u64 end = load(c.end); end != known.end && end != shm::no_number)
        f.add("the run: end",
              fmt::format("is {}, the supervisor has set {}", end_text(end), end_text(known.end)));
    for (u32 k = 0; k < std::min(made.links, shm::max_links); ++k) {
        const std::string object = fmt::format("ring of {}: tail", made.link[k].name);
        const u64 tail = load(c.link[k].tail),
                  before = k < known.tails.size() ? known.tails[k] : made.first_ring_sequence;
        if (!intact(load(c.link[k].tail.raw()))) continue;  // check_parity
        if (tail < before) f.add(object, fmt::format("is {}, it was {} before and only grows", tail, before));
        if (known.end != end_unknown && known.end != end_stopping &&
            tail > std::max(known.end + known.surplus, before))
            f.add(object, fmt::format("is {}, beyond the end of the run ({})", tail, known.end));
        // the tail is read first, because it follows `committed`
        const u64 begun = made.first_ring_sequence, committed = load(c.link[k].committed);
        if (known.miscounted < ~u64{0} && tail > begun && tail - begun > known.miscounted &&
            tail - begun - known.miscounted > committed)
            f.add(object,
                  fmt::format("is {}, but {} frames have been committed since {}", tail, committed, begun));
    }
    check_parameters(f, c, made);
    check_claims(f, c, made);
    check_entries(f, c, made, known);
    for (u32 k = 0; k < std::min(made.assets, shm::max_assets); ++k)
        if (const u64 state = code(asset_word::of(load(c.asset[k].state)).state);
            state > code(shm::asset_state::ready) && state != code(shm::asset_state::damaged))
            f.add(fmt::format("asset {}: state", made.asset[k].name),
                  fmt::format("is the invalid state {}", state));
    return f.take();
}

std::string name_of(const shm::control_block& made, const word_place& at) {
    switch (at.kind) {
        case word_kind::end:
            return "the run: end";
        case word_kind::parameters:
            return "parameters: state";
        case word_kind::tail:
            return ring_name(made, at.first) + ": tail";
        case word_kind::group:
            return fmt::format("{}: group_state {}", ring_name(made, at.first), at.second);
        case word_kind::slot:
            return fmt::format("{}: slot {}", ring_name(made, at.first), at.second);
        case word_kind::lease:
            return fmt::format("{}: slot {}, group {}", ring_name(made, at.first), at.second, at.third);
        case word_kind::header:
            return fmt::format("{}: slot {}: header.ring_sequence", ring_name(made, at.first), at.second);
        case word_kind::sequence:
            return fmt::format("{}: number word {}", source_name(made, at.first), at.second);
        case word_kind::claim:
            return source_name(made, at.first) + ": ended";
        case word_kind::seat:
            return fmt::format("seat of {}: current", seat_name(made, at.first));
        case word_kind::entry:
            return fmt::format("entry {}: identity", at.first);
        case word_kind::job:
            return job_name(made, at.first);
        case word_kind::ring_sequence:
            return job_name(made, at.first) + ": sequence";
        case word_kind::asset:
            return fmt::format("asset {}: state", made.asset[std::min(at.first, shm::max_assets - 1)].name);
    }
    return "?";
}

std::vector<finding> check_parity(const shm::control_block& c, const shm::control_block& made) {
    std::vector<finding> all;
    for (const damaged_word& w : damaged_words(c, made))
        all.push_back(
            {name_of(made, w.at), fmt::format("is damaged: {:#x} is not a valid word, by one bit", w.raw)});
    return all;
}

}  // namespace carousel::ring
