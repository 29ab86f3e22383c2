#include "ring/check/block_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <tuple>
#include <type_traits>

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
        if (std::memcmp(&now, &then, sizeof then) == 0) return;
        const std::string word = fmt::format("{}: {}", object, field);
        if constexpr (!std::is_array_v<T>) {
            add(word, fmt::format("is {}, but was {} at the start", now, then));
        } else if constexpr (std::is_same_v<std::remove_extent_t<T>, char>) {
            add(word, fmt::format("is no longer \"{}\"", std::string(then, strnlen(then, sizeof then))));
        } else if constexpr (std::is_same_v<std::remove_extent_t<T>, std::byte>) {
            add(word, "has changed since the start");
        } else {
            for (std::size_t k = 0; k < std::extent_v<T>; ++k) same(now[k], then[k], object, field);
        }
    }
    /// Compares all fields of a table of the block (shm/control_block.hpp).
    template <typename Block, typename Fields>
    void all_same(const Block& now, const Block& then, const std::string& object, const Fields& fields) {
        std::apply([&](const auto&... f) { (same(now.*f.at, then.*f.at, object, f.name), ...); }, fields);
    }
    [[nodiscard]] std::vector<finding> take() { return std::move(all_); }

private:
    std::vector<finding> all_;
};

void check_head(findings& f, const shm::control_block& c, const shm::control_block& made) {
    const std::string object = "the block's head";
    if (load(c.magic) != shm::control_magic)
        f.add(object + ": magic", "is not that of a control block, so no process can attach any more");
    f.all_same(c, made, object, shm::head_fields);
}

void check_sets(findings& f, const shm::parameter_box& now, const shm::parameter_box& then) {
    f.same(now.bytes, then.bytes, "parameters", "bytes");
    for (u32 k = 0; k < shm::max_parameter_sets; ++k) {
        const std::string object = fmt::format("parameters: set {}", k);
        f.same(now.set[k].from, then.set[k].from, object, "from");
        f.same(now.set[k].number, then.set[k].number, object, "number");
        f.same(now.set[k].value, then.set[k].value, object, "value");
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
              fmt::format("is {}, although it was {} before and can only grow", is.horizon, was.horizon));
    u64 reach = 0;
    for (u32 k = 0; k < std::min(made.sources, shm::max_sources); ++k) {
        const u32 link = std::min(made.source[k].link, shm::max_links - 1);
        const u64 tail = load(c.link[link].tail.raw());  // The tail is read after the state: since tails only
                                                         // grow, the bound is never too low.
        if (!intact(tail)) return;  // a damaged tail gives no bound; check_parity() reports the damage
        reach = std::max(reach, shm::tail_word::unpack(tail) + made.link[link].window);
    }
    if (made.sources > 0 && is.horizon > reach)
        f.add("parameters: horizon",
              fmt::format("is {}, but no source can have leased {} or a higher number", is.horizon, reach));
}

// A claim was made by a source that may end its stream, and names a number that was leased to one of the
// source's jobs. The claim may no longer be valid.
void check_claims(findings& f, const shm::control_block& c, const shm::control_block& made) {
    for (u32 k = 0; k < std::min(made.sources, shm::max_sources); ++k) {
        const u64 raw = load(c.source[k].ended);  // The claim is read before the tail: since tails only grow,
                                                  // the bound is never too low.
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
                  fmt::format("has state {}, although its process is working", static_cast<u32>(w.state)));
        if (!l.current) continue;
        if (!intact(load(c.seat[l.seat].current))) continue;
        const seat_word sits = seat_word::of(load(c.seat[l.seat].current));
        if (sits != seat_word{l.epoch, l.entry})
            f.add(fmt::format("seat of {}: current", seat_name(made, l.seat)),
                  fmt::format("names epoch {} in entry {}, but the seat has epoch {} in entry {}", sits.epoch,
                              static_cast<i64>(sits.entry), l.epoch, l.entry));
    }
}

// check_parity() finds the words that are damaged by one bit, and names each of them.

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
        f.all_same(c.stage[k], made.stage[k], "stage " + stage_name(made, k), shm::stage_fields);
    for (u32 k = 0; k < std::min(made.links, shm::max_links); ++k)
        f.all_same(c.link[k], made.link[k], ring_name(made, k), shm::link_fields);
    for (u32 k = 0; k < std::min(made.seats, shm::max_seats); ++k)
        f.all_same(c.seat[k], made.seat[k], "seat of " + seat_name(made, k), shm::seat_fields);
    for (u32 k = 0; k < std::min(made.sources, shm::max_sources); ++k)
        f.all_same(c.source[k], made.source[k], source_name(made, k), shm::source_fields);
    for (u32 k = 0; k < std::min(made.jobs, shm::max_jobs); ++k)
        f.all_same(c.job_info[k], made.job_info[k], job_name(made, k), shm::job_fields);
    for (u32 k = 0; k < std::min(made.assets, shm::max_assets); ++k)
        f.all_same(c.asset[k], made.asset[k], "asset " + std::string(made.asset[k].name), shm::asset_fields);
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
        if (tail < before)
            f.add(object, fmt::format("is {}, although it was {} before and can only grow", tail, before));
        if (known.end != end_unknown && known.end != end_stopping &&
            tail > std::max(known.end + known.surplus, before))
            f.add(object, fmt::format("is {}, which is beyond the end of the run ({})", tail, known.end));
        // The tail is read before `committed`, because the tail follows that counter.
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
        all.push_back({name_of(made, w.at),
                       fmt::format("is damaged: {:#x} differs from a valid word in one bit", w.raw)});
    return all;
}

}  // namespace carousel::ring
