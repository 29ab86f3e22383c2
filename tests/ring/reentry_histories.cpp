#include "reentry_histories.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "ring/check/block_check.hpp"
#include "ring/reentry.hpp"
#include "seated.hpp"
#include "shm/sink.hpp"

namespace carousel::test {
namespace {

constexpr u64 incomplete = ~u64{0};
using place = std::pair<u32, u32>;  // link, slot

struct under_way {
    ring::job j;
    u32 step = 0;
};

struct reentry_process {
    seated at;
    std::vector<under_way> jobs;
};

/// A process of the source that is revoked, and still has the memory mapped.
struct unfenced_process {
    ring::incarnation_id incarnation;
    std::vector<place> writes;
};

class reentry_run {
public:
    explicit reentry_run(const reentry_options& o) : o_(o), random_(o.seed) {
        o_.plan.end = o.frames;
        if (o.made_once) o_.plan.stages[0].in_flight = 1;  // a program has one frame at a time
        if (o.state) {
            ring::stage_plan& middle = o_.plan.stages[1];
            middle.instances = 1;
            middle.more.push_back({"middle.state", 0, 256});
            middle.state = true;
        }
        if (o.sink_state) o_.plan.stages[2].has_output = o_.plan.stages[2].state = true;
        begin_block(0);
    }

    reentry_outcome run() {
        for (u64 idle = 0, steps = 0; !over(); ++steps) {
            if (steps > 40'000 || idle > 4'000) {
                out_.stuck = true;
                break;
            }
            const u64 before = moves_;
            step_unfenced();
            if (left_ > 0 && random_() % (10 * o_.frames / o_.rebuilds) == 0) {
                --left_;
                rebuild();
            } else {
                step(processes_[random_() % processes_.size()]);
            }
            idle = moves_ == before ? idle + 1 : 0;
            if (!out_.finding.empty() || out_.ended) break;
        }
        for (const auto& [stage, frames] : delivered_) {
            const std::set<u64> each(frames.begin(), frames.end());
            out_.repeated += frames.size() - each.size();
            if (!out_.stuck && !out_.ended) out_.lost += o_.frames - each.size();
        }
        out_.reported = reported_.size();
        return out_;
    }

private:
    [[nodiscard]] shm::control_block& c() const { return *block_->c; }
    [[nodiscard]] bool over() const {
        return std::all_of(delivered_.begin(), delivered_.end(), [&](const auto& of) {
            return std::set<u64>(of.second.begin(), of.second.end()).size() >= o_.frames;
        });
    }

    void begin_block(u64 first) {
        o_.plan.first_ring_sequence = first;
        block_ = std::make_unique<bench>(o_.plan);
    }
    void seat_all() {
        processes_.clear();
        for (u32 k = 0; k < c().seats; ++k) {
            processes_.push_back({block_->sit(k), {}});
            const u32 stage = c().seat[k].stage;
            if (shm::is_sink(c().stage[stage])) delivered_[stage];
        }
    }

    void step(reentry_process& p) {
        ring::worker& w = *p.at.w;
        const shm::stage_block& s = c().stage[c().seat[p.at.incarnation.seat].stage];
        if (p.jobs.size() < s.in_flight && random_() % 2 == 0) {
            ring::job j;
            if (w.begin(j, static_cast<u32>(p.jobs.size())) != ring::outcome::ok) {
                // no reader sweeps a ring of states
                if (w.has_state()) moves_ += w.output(w.outputs() - 1).sweep() ? 1 : 0;
                return;
            }
            ++moves_;
            for (u32 i = 0; i < j.inputs && !j.is_tombstone(); ++i)
                out_.torn += content_[{s.input_link[i], j.input[i].index}] != j.ring_sequence ? 1 : 0;
            for_outputs(w, j, [&](place at) {
                content_[at] = incomplete;
                status_[at] = status_of(p, j, device::status_state::writing);
            });
            p.jobs.push_back({j});
            return;
        }
        if (p.jobs.empty()) {
            for (u32 k = 0; k < s.inputs; ++k) moves_ += ring::link_ref(c(), s.input_link[k]).sweep() ? 1 : 0;
            return;
        }
        // Sinks and stages with a state commit in order, as their runner does; any other stage in any order.
        const u64 n = shm::is_sink(s) || w.has_state() ? 0 : random_() % p.jobs.size();
        under_way& u = p.jobs[n];
        ++moves_;
        switch (u.step++) {
            case 0:
                for_outputs(w, u.j, [&](place at) {
                    status_[at] = status_of(p, u.j, device::status_state::ready);
                    if (!s_finishes(s)) content_[at] = u.j.ring_sequence;
                });
                if (!w.submit(u.j)) out_.finding = "a live worker is revoked";
                break;
            case 1:
                for_outputs(w, u.j, [&](place at) { content_[at] = u.j.ring_sequence; });
                if (w.has_state()) out_.torn += continues(w, u.j) ? 0 : 1;
                if (!w.commit(u.j)) out_.finding = "a live worker is revoked";
                if (shm::is_sink(s)) {
                    delivered_[c().seat[p.at.incarnation.seat].stage].push_back(u.j.ring_sequence);
                    if (u.j.is_tombstone()) reported_.insert(u.j.ring_sequence);
                }
                if (s.source != shm::none) ++out_.made;
                if (s.source != shm::none && o_.made_once && !made_.insert(u.j.ring_sequence).second &&
                    unknown_ == 0)
                    out_.finding = "a number that a program has used is used again";
                break;
            default:
                (void)w.complete(u.j);
                p.jobs.erase(p.jobs.begin() + static_cast<std::ptrdiff_t>(n));
        }
    }
    /// True if the state before the frame is that of the frame before it, whole.
    bool continues(ring::worker& w, const ring::job& j) {
        if (!j.previous) return j.ring_sequence == 0;
        return content_[{w.output(w.outputs() - 1).index(), j.previous.index}] == j.ring_sequence - 1;
    }
    /// The stage writes its payload in finish(), after the status word.
    static bool s_finishes(const shm::stage_block& s) {
        return (s.flags & shm::stage_flag::owner_commits) != 0;
    }
    template <typename F>
    static void for_outputs(ring::worker& w, const ring::job& j, F&& fn) {
        for (u32 k = 0; k < w.outputs(); ++k) fn(place{w.output(k).index(), j.output[k].index});
    }
    static device::status_word status_of(const reentry_process& p, const ring::job& j,
                                         device::status_state s) {
        return {j.ring_sequence, p.at.incarnation.epoch, static_cast<u32>(s)};
    }

    /// The old process writes into its buffer, or ends.
    void step_unfenced() {
        for (std::size_t k = 0; k < unfenced_.size(); ++k) {
            const unfenced_process& p = unfenced_[k];
            if (random_() % 40 == 0) {
                ring::mark_fenced(c(), p.incarnation.entry);
                (void)ring::requeue(c(), p.incarnation.seat, p.incarnation.epoch, ring::blame::none, 0);
                if (!ring::reclaim(c(), p.incarnation.seat, p.incarnation.epoch))
                    out_.finding = "a fenced process keeps its words";
                unfenced_.erase(unfenced_.begin() + static_cast<std::ptrdiff_t>(k));
                return;
            }
            for (const place& at : p.writes) content_[at] = incomplete;
        }
    }

    /// R1, R2 and R4 for the program's process, which a rebuild cannot end.
    void revoke_source() {
        const reentry_process& p = processes_.front();
        ring::doom(c(), p.at.incarnation.entry);
        (void)ring::appoint(c(), p.at.incarnation.seat);
        if (!ring::revoke(c(), p.at.incarnation.seat, p.at.incarnation.epoch))
            out_.finding = "the source can't be revoked";
        (void)ring::requeue(c(), p.at.incarnation.seat, p.at.incarnation.epoch, ring::blame::none, 0);
        // fenced by now, if one of an earlier rebuild is not
        if (!unfenced_.empty() || random_() % 2 == 0) return;
        unfenced_.push_back({p.at.incarnation, {}});
        for (const under_way& u : p.jobs)
            if (u.step < 2)
                for_outputs(*p.at.w, u.j, [&](place at) { unfenced_.back().writes.push_back(at); });
    }

    void damage() {
        std::vector<place> ready;
        for (u32 k = 0; k < c().links; ++k)
            for (u32 slot = 0; slot < c().link[k].slots; ++slot)
                if (block_->slot(k, slot).state == ring::slot_state::ready) ready.emplace_back(k, slot);
        if (!ready.empty() && o_.damage.headers) {
            const auto [k, slot] = ready[random_() % ready.size()];
            auto* bytes = reinterpret_cast<std::byte*>(&c().frames[k].header[slot]);
            constexpr std::size_t own = offsetof(shm::frame_header, metadata_bytes);
            bytes[random_() % own] ^= std::byte{1} << random_() % 8;
        }
        if (!ready.empty() && o_.damage.memory) {
            const place at = ready[random_() % ready.size()];
            status_[at] = {};
            content_[at] = incomplete;
        }
        if (!o_.damage.words) return;
        for (u32 k = 0; k < c().links; ++k) {
            c().link[k].tail.raw().store(random_());
            for (auto& of_slot : c().link[k].group)
                for (shm::word& at : of_slot) at.store(random_());
        }
        for (shm::word& at : c().job) at.store(random_());
        for (shm::word& at : c().source[0].sequence_lease) at.store(random_());
    }

    // The sinks' accounts and the plan are kept; the old block gives headers and slot words.
    void rebuild() {
        if (o_.made_once) revoke_source();
        damage();
        ring::reentry_limits limits{o_.frames, o_.frames, {}, {}};
        limits.delivered_below.resize(c().stages);
        for (const auto& [stage, frames] : delivered_) {
            const std::set<u64> each(frames.begin(), frames.end());
            u64& lacking = limits.delivered_below[stage];
            while (each.contains(lacking)) ++lacking;
            limits.first = std::min(limits.first, lacking);
        }
        if (o_.made_once) limits.made_once = {true};
        const std::unique_ptr<bench> old = std::move(block_);
        o_.plan.first.epoch = ring::epoch_above(*old->c, *old->c);
        ring::kept_frames kept;
        for (;; --limits.first) {
            begin_block(limits.first);
            kept = ring::find_kept_frames(*old->c, c(), limits,
                                          [&](u32 link, u32 slot) -> std::optional<device::status_word> {
                                              return status_[{link, slot}];
                                          });
            if (kept.without_state == shm::none) break;
            if (limits.first == 0 || o_.made_once) {
                out_.ended = true;
                return;
            }
        }
        for (const unfenced_process& p : unfenced_) ring::enter_unfenced(c(), *old->c, p.incarnation);
        ring::enter_frames(c(), *old->c, kept, 1);
        for (auto& [stage, frames] : delivered_) {
            if (o_.made_once && kept.done_below[stage] != limits.delivered_below[stage])
                out_.finding = "a sink gets a frame again";
            const u64 below = kept.done_below[stage];
            std::erase_if(frames, [&](u64 n) { return n >= below; });
        }
        for (const bool is : kept.unknown) unknown_ += is ? 1 : 0;
        out_.entered += kept.count();
        ++moves_;
        const shm::private_block made = shm::make_private_block();
        shm::copy_words(*made, c());
        ring::known_run known;
        known.end = o_.frames;
        known.miscounted = 0;
        std::vector<ring::finding> found = ring::check_words(c(), *made, known);
        for (const ring::finding& f : ring::check_known(c(), *made, known)) found.push_back(f);
        if (!found.empty()) out_.finding = found.front().text();
        seat_all();
    }

public:
    void begin() { seat_all(); }

private:
    reentry_options o_;
    std::mt19937_64 random_;
    u32 left_ = o_.rebuilds;
    u64 moves_ = 0;
    std::unique_ptr<bench> block_;
    std::vector<reentry_process> processes_;
    std::map<place, u64> content_;
    std::map<place, device::status_word> status_;
    std::map<u32, std::vector<u64>> delivered_;
    std::set<u64> made_, reported_;
    u64 unknown_ = 0;  ///< lost frames without a known number
    std::vector<unfenced_process> unfenced_;
    reentry_outcome out_;
};

}  // namespace

ring::plan reentry_plan(u64 seed) {
    ring::plan p;
    p.stages = {{"source", {}, true, 2, 1},
                {"middle", {0}, true, 2, seed % 2 == 0 ? 2U : 1U},
                {"left", {1}, false, 2, 1}};
    for (u32 k = 0; k < 2; ++k) p.stages[k].window = 3;
    if (seed % 3 == 1) p.stages.push_back({"right", {0}, false, 1, 1});
    if (seed % 3 == 2) {
        p.stages[0].more = {{"source.more", 2, 256}};
        p.stages[2].inputs = {1, 0};
        p.stages[2].input_outputs = {0, 1};
        p.stages.push_back({"right", {1}, false, 1, 1});
    }
    p.stages[seed % 5 < 2 ? 0 : 1].owner_commits = seed % 5 != 4;
    if (seed % 7 == 0) p.first = ring::counters_near_overflow;
    return p;
}

reentry_outcome run_with_rebuilds(const reentry_options& o) {
    reentry_run r(o);
    r.begin();
    return r.run();
}

}  // namespace carousel::test
