#pragma once
// What the explored scenarios share: a control block that is restored before each order, the contents of
// slots, the steps of a stage's process and of its retirement, and what must hold after each order.

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "interleaving_explorer.hpp"
#include "seated.hpp"

namespace carousel::test {

/// A run whose state before the scenario is kept, with what its processes have done since.
class explored_run {
public:
    explicit explored_run(const ring::plan& p) : b(p) { b.c->end.store(p.end); }

    bench b;
    std::map<u32, std::vector<u64>> delivered;  ///< per sink
    const ring::worker* revoked = nullptr;      ///< of the process that can commit nothing any more

    /// Stands for the payload of the slot: the job that has written it last (made_by). It is in a word of a
    /// ring that the plan does not have, so that processes switch before each access to it.
    shm::word& content(u32 link, u32 slot) { return payloads(link).slot[slot]; }
    [[nodiscard]] static u64 made_by(u32 job, u64 version) {
        return u64{job} << 32U | (version & ring::version_mask);
    }
    [[nodiscard]] static u64 made_by(const ring::slot_ref& s) { return made_by(s.word.job, s.word.version); }

    /// To be called once, when the state is that before the scenario.
    void keep() {
        shm::control_block& c = *b.c;
        kept_ = shm::make_private_block();
        shm::copy_words(*kept_, c);
        for (u32 k = 0; k < c.links; ++k) {
            part(c.link[k].tail, c.link[k].committed_ns);
            part(payloads(k).slot, payloads(k).slot);
            restored_.push_back(bytes(c.frames[k].header[0], c.frames[k].header[c.link[k].slots]));
        }
        for (u32 k = 0; k < c.stages; ++k) part(c.stage[k].doorbell, c.stage[k].counters);
        for (u32 k = 0; k < c.seats; ++k) part(c.seat[k].current, c.seat[k].bell);
        for (u32 k = 0; k < c.sources; ++k) part(c.source[k].ended, c.source[k].sequence_lease);
        part(c.job[0], c.job[c.jobs]);
        part(c.job_info[0], c.job_info[c.jobs]);
        part(c.entry[0], c.entry[16]);
        part(c.end, c.supervisor_doorbell);
        part(c.parameters.state, c.parameters.state);
        for (const auto& range : restored_) {
            const auto offset = static_cast<std::size_t>(range.data() - block().data());
            std::memcpy(kept_bytes() + offset, range.data(), range.size());
        }
        kept_delivered_ = delivered;
    }
    void restore() {
        for (const auto& range : restored_) {
            const auto offset = static_cast<std::size_t>(range.data() - block().data());
            std::memcpy(const_cast<std::byte*>(range.data()), kept_bytes() + offset, range.size());
        }
        delivered = kept_delivered_;
        revoked = nullptr;
    }
    /// True if restore() restores every word of the block.
    [[nodiscard]] bool restores_all() {
        restore();
        return std::memcmp(block().data(), kept_bytes(), shm::word_bytes) == 0;
    }
    /// The protocol's words: no counters, doorbells and times.
    [[nodiscard]] std::vector<std::span<const std::byte>> words() const {
        shm::control_block& c = *b.c;
        std::vector<std::span<const std::byte>> out;
        for (u32 k = 0; k < c.links; ++k) {
            out.push_back(bytes(c.link[k].tail, c.link[k].lease_since_ns));
            out.push_back(bytes(c.link[k].slot, c.link[k].event_tag));
            out.push_back(bytes(payloads(k).slot, payloads(k).group));
            for (u32 s = 0; s < c.link[k].slots; ++s)
                out.push_back(bytes(c.frames[k].header[s].ring_sequence, c.frames[k].header[s].claimed_ns));
        }
        for (u32 k = 0; k < c.seats; ++k) out.push_back(bytes(c.seat[k].current, c.seat[k].paused));
        for (u32 k = 0; k < c.sources; ++k) out.push_back(bytes(c.source[k].ended, c.source[k + 1]));
        for (u32 k = 0; k < c.jobs; ++k) {
            out.push_back(bytes(c.job[k], c.job[k + 1]));
            out.push_back(bytes(c.job_info[k].ring_sequence, c.job_info[k + 1]));
        }
        out.push_back(bytes(c.parameters.state, *(&c.parameters.state + 1)));
        for (u32 k = 0; k < 16; ++k) out.push_back(bytes(c.entry[k].identity, c.entry[k].start_time));
        return out;
    }

    /// The steps of one frame. Returns false if the process must end, because it is revoked.
    bool work(ring::worker& w, ring::job& j) {
        if (!w.submit(j)) return false;
        for (u32 k = 0; k < w.outputs(); ++k)
            content(w.output(k).index(), j.output[k].index).store(made_by(j.index, j.version));
        bool torn = false;
        for (u32 k = 0; k < j.inputs; ++k)
            torn = torn || content(w.input(k).index(), j.input[k].index).load() != made_by(j.input[k]);
        if (!w.commit(j)) return false;  // what a revoked process has read is discarded
        if (revoked == &w) unsound("a revoked process has committed");
        if (torn) unsound("a torn frame was used");
        if (w.outputs() == 0) delivered[w.stage_index()].push_back(j.ring_sequence);
        return w.complete(j);
    }
    /// A process of a stage until END, or until it has begun `frames` frames.
    void process(ring::worker& w, u32 frames) {
        for (u32 begun = 0; begun < frames;) {
            const u64 seen = changes_by_others();
            ring::job j;
            const ring::outcome o = w.begin(j, 0);
            if (o == ring::outcome::revoked || o == ring::outcome::closed) return;
            if (o != ring::outcome::ok) {
                await_change(seen);
                continue;
            }
            ++begun;
            if (!work(w, j)) return;
        }
    }
    /// R1 to R6 for the process `fiber`, which continues until the fence.
    void retire(const seated& dead, u32 fiber) {
        shm::control_block& c = *b.c;
        const auto [seat, entry, epoch] = dead.incarnation;
        ring::doom(c, entry);
        if (!ring::appoint(c, seat)) report_unsound("no successor is appointed");
        u32 tries = 0;
        while (!ring::revoke(c, seat, epoch, [](u64) {}) && ++tries < 100) continue;
        if (tries == 100) return report_unsound("the process is never revoked");
        revoked = dead.w.get();
        (void)ring::requeue(c, seat, epoch, ring::blame::own, 1);
        end_process(fiber);  // the fence
        ring::mark_fenced(c, entry);
        (void)ring::requeue(c, seat, epoch, ring::blame::own, 0);
        if (!ring::reclaim(c, seat, epoch)) report_unsound("the fenced process still holds a frame or slot");
    }

    /// Lets present processes of all seats take the remaining frames in turn; returns what is wrong then.
    std::string finish() {
        shm::control_block& c = *b.c;
        std::vector<std::unique_ptr<ring::worker>> all;
        for (u32 seat = 0; seat < c.seats; ++seat) {
            const ring::seat_word s = ring::seat_word::of(ring::load(c.seat[seat].current));
            all.push_back(std::make_unique<ring::worker>(c, seat, s.entry, s.epoch));
        }
        finding_.clear();
        outside_ = true;
        for (bool moved = true; moved && finding_.empty();) {
            moved = false;
            for (const auto& w : all) {
                bool room = true;  // begin() would sleep if the words of a slot were lost
                for (u32 k = 0; k < w->outputs(); ++k) room = room && w->output(k).has_free_slot();
                ring::job j;
                if (!room || w->begin(j, 0) != ring::outcome::ok) continue;
                moved = true;
                if (!work(*w, j)) finding_ = "a present process finds itself revoked";
            }
        }
        outside_ = false;
        for (u32 k = 0; k < c.links; ++k) ring::link_ref(c, k).sweep();
        return finding_.empty() ? fault() : finding_;
    }

private:
    // After the last frame every frame was delivered once and in order, and nothing is held.
    [[nodiscard]] std::string fault() {
        shm::control_block& c = *b.c;
        const u64 end = ring::load(c.end);
        for (u32 k = 0; k < c.stages; ++k) {
            if (c.stage[k].outputs != 0) continue;
            std::vector<u64> frames = delivered[k];
            if (c.stage[k].seats > 1)
                std::sort(frames.begin(), frames.end());  // only one process keeps order
            std::string got;
            bool right = frames.size() == end;
            for (u64 n = 0; n < frames.size(); ++n) {
                got.append(" ").append(std::to_string(frames[n]));
                right = right && frames[n] == n;
            }
            if (!right) return "of " + std::to_string(end) + " frames were delivered:" + got;
        }
        for (u32 k = 0; k < c.links; ++k) {
            if (ring::load(c.link[k].tail) != end) return "a tail is not at END";
            for (u32 s = 0; s < c.link[k].slots; ++s)
                if (b.slot(k, s).state != ring::slot_state::free) return "a slot is not free";
        }
        for (u32 k = 0; k < c.jobs; ++k)
            if (b.job(k).state != ring::job_state::idle) return "a job word is not idle";
        return "";
    }
    [[nodiscard]] shm::link_block& payloads(u32 link) const { return b.c->link[shm::max_links - 1 - link]; }
    void unsound(const char* what) {
        if (outside_)
            finding_ = what;
        else
            report_unsound(what);
    }

    template <typename From, typename To>
    static std::span<const std::byte> bytes(const From& from, const To& to) {
        const auto *first = reinterpret_cast<const std::byte*>(&from),
                   *last = reinterpret_cast<const std::byte*>(&to);
        return {first, static_cast<std::size_t>(last - first)};
    }
    template <typename From, typename Last>
    void part(const From& from, const Last& last) {
        restored_.push_back(bytes(from, *(&last + 1)));
    }
    [[nodiscard]] std::span<const std::byte> block() const { return std::as_bytes(std::span(b.c.get(), 1)); }
    [[nodiscard]] std::byte* kept_bytes() const { return reinterpret_cast<std::byte*>(kept_.get()); }

    shm::private_block kept_;
    std::vector<std::span<const std::byte>> restored_;
    std::map<u32, std::vector<u64>> kept_delivered_;
    bool outside_ = false;
    std::string finding_;
};

}  // namespace carousel::test
