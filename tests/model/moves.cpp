#include "moves.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace carousel::model {

const char* name_of(failure f) {
    static constexpr const char* names[] = {
        "OK",    "TORN",          "REPEATED",        "LATE",   "SPURIOUS", "ORDER", "INNOCENT",
        "STUCK", "VIEWER-BLOCKS", "WAITS-FOR-FENCE", "TOO-BIG"};
    return names[static_cast<int>(f)];
}

std::string to_text(label l) {
    static constexpr const char* names[] = {"start",
                                            "gpu-writes",
                                            "open",
                                            "pick",
                                            "choose",
                                            "lease",
                                            "second-lease",
                                            "lost-lease",
                                            "give-back",
                                            "abandon",
                                            "fill",
                                            "launch",
                                            "work",
                                            "die-of-frame",
                                            "submit",
                                            "find-revoked",
                                            "commit",
                                            "find-helped",
                                            "mark-ready",
                                            "finish-input",
                                            "finish-number",
                                            "go-idle",
                                            "acknowledge",
                                            "instant-frame",
                                            "declare-dead",
                                            "fence",
                                            "hand-over",
                                            "abort",
                                            "requeue",
                                            "quarantine",
                                            "free-quarantined",
                                            "finish-ready",
                                            "finish-lease",
                                            "recycle",
                                            "begin-scan",
                                            "scan",
                                            "supervisor-dies",
                                            "stop-sources",
                                            "set-end",
                                            "skip-absent",
                                            "skip-untaken",
                                            "revoke-lease",
                                            "helper-sees",
                                            "helper-seeks",
                                            "helper-fired",
                                            "helper-abandons",
                                            "helper-commits",
                                            "helper-late",
                                            "helper-marks",
                                            "helper-inputs",
                                            "helper-idles",
                                            "reads",
                                            "finishes",
                                            "reader-dies",
                                            "passes",
                                            "joins",
                                            "leaves",
                                            "viewer-sees",
                                            "viewer-leases",
                                            "viewer-misses",
                                            "viewer-shows",
                                            "viewer-discards",
                                            "move-tail",
                                            "free-begins",
                                            "free-closes",
                                            "free-looks",
                                            "frees",
                                            "freer-dies",
                                            "claim-end",
                                            "lower-end",
                                            "slot-back",
                                            "number-back",
                                            "flip",
                                            "mend"};
    static_assert(std::size(names) == static_cast<size_t>(action::repair) + 1);
    std::string out = names[static_cast<int>(l.what)];
    if (l.a != none) out += fmt::format("({}", l.a);
    if (l.b != none) out += fmt::format(":{}", l.b);
    return l.a != none ? out + ")" : out;
}

void moves::expand(const state& s) {
    now_ = truth_ = &s;
    if (s.damaged != none && cfg.damages > 0) {
        masked_ = s;
        mask_word(cfg, masked_, s.damaged);
        now_ = &masked_;
    }
    stage_rules(*this);
    instant_rules(*this);
    supervisor_rules(*this);
    claim_rules(*this);
    ending_rules(*this);
    helper_rules(*this);
    consumer_rules(*this);
    latest_rules(*this);
    free_rules(*this);
    damage_rules(*this);
}

// No CAS expects a damaged word: a step that would change it is not possible yet.
void moves::emit(label l, actor acting) {
    if (now_ != truth_) {
        if (!same_word(cfg, next_, masked_, truth_->damaged)) {
            failure_ = failure::holds;
            why_.clear();
            return;
        }
        copy_word(cfg, *truth_, next_, truth_->damaged);
        if (l.what == action::repair)
            for (size_t e = 0; e < cfg.incarnations.size(); ++e)
                if (next_.incarnation[e].declared != 0) note_revoked(next_, static_cast<int>(e));
    }
    normalise(next_);
    out_.take(next_, l, acting, failure_, why_);
    failure_ = failure::holds;
    why_.clear();
}

// Drops what no process can read any more, so that states that differ only in it become equal.
void moves::normalise(state& t) const {
    for (size_t l = 0; l < cfg.lanes.size(); ++l) {
        const int e = cfg.lanes[l];
        if (t.incarnation[e].fenced == 0) continue;
        lane_registers& p = t.lane[l];
        p.at = step::idle;
        p.gpu = gpu_work::no;
        if (p.job == none) continue;
        // the ghosts still query the frame that a word of the dead incarnation refers to
        const job_word& j = t.job[p.job];
        const bool keep = j.version == p.version && j.epoch == e && j.state != job_state::idle;
        for (slot_register& o : t.output[l]) o = {none, 0};
        if (keep) continue;
        p.job = p.version = p.frame = none;
        p.flags = 0;
        for (slot_register& i : t.input[l]) i = {none, none};
    }
    for (size_t k = 0; k < cfg.links.size(); ++k) {
        for (int x = 0; x < cfg.links[k].slots; ++x) {
            slot_word& w = t.link[k].slot[x];
            if (w.state != slot_state::free) continue;
            w.ring_sequence = none;
            for (int g = 0; g < cfg.groups(static_cast<int>(k)); ++g) {
                lease_word& c = t.link[k].group[x][g];
                if (c.state != lease_state::leased)
                    c = {static_cast<u8>(w.generation - 1), lease_state::done, none, none, 0};
            }
        }
    }
}

int moves::successor(int e) const {
    while (cfg.incarnations[e].next >= 0 &&
           now_->incarnation[cfg.incarnations[e].next].alive != process_state::unborn)
        e = cfg.incarnations[e].next;
    return e;
}

int moves::lane_of(const state& s, int job, int version, int e) const {
    for (size_t l = 0; l < cfg.lanes.size(); ++l)
        if (cfg.lanes[l] == e && s.lane[l].job == job && s.lane[l].version == version)
            return static_cast<int>(l);
    return -1;
}

void moves::commit(state& t, int job, int version, int e) {
    t.job[job].state = job_state::committed;
    const int stage = cfg.stage_of(e);
    if (const int l = lane_of(t, job, version, e); l >= 0 && t.lane[l].frame != none) {
        const u8 f = t.lane[l].frame;
        const u8 bit = static_cast<u8>(1U << f);
        if ((t.committed[stage] & bit) != 0)
            fail(failure::repeated, fmt::format("stage {} commits frame {} twice", stage, f));
        const bool sink = cfg.outputs(stage) == 0;
        if (sink && (t.committed[stage] != cfg.taken_below(stage, f) || f % cfg.stages[stage].every != 0))
            fail(failure::order, fmt::format("the sink commits frame {} out of order", f));
        t.committed[stage] |= bit;
        for (int i = 0; i < cfg.inputs(stage); ++i) {
            const slot_register& in = t.input[l][i];
            if (in.slot == none) continue;
            const slot_word& w = truth_->link[cfg.stages[stage].input[i]].slot[in.slot];
            if (w.generation != in.generation || w.state != slot_state::ready || w.content != f)
                fail(failure::torn,
                     fmt::format("stage {} commits frame {} whose input {} was overwritten", stage, f, i));
        }
    }
    if (t.incarnation[e].declared != 0 && (t.revoked >> e & 1U) != 0)
        fail(failure::late_commit, fmt::format("a commit of incarnation {} after all was taken from it", e));
}

void moves::make_ready(state& t, int link, int slot) {
    link_state& l = t.link[link];
    slot_word& w = l.slot[slot];
    if (w.ring_sequence < l.tail)
        fail(failure::repeated,
             fmt::format("slot {} READY with frame {} below the tail {}", slot, w.ring_sequence, l.tail));
    for (int y = 0; y < cfg.links[link].slots; ++y)
        if (y != slot && l.slot[y].state == slot_state::ready && l.slot[y].ring_sequence == w.ring_sequence)
            fail(failure::repeated, fmt::format("frame {} READY twice", w.ring_sequence));
    w.state = slot_state::ready;
    w.job = w.version = none;
}

void moves::note_revoked(state& t, int e) const {
    for (int j = 0; j < cfg.jobs(); ++j) {
        const job_word& w = t.job[j];
        if (w.epoch != e) continue;
        const bool counts = w.state == job_state::open || w.state == job_state::damaged ||
                            w.state == job_state::submitted ||
                            (w.state == job_state::idle && cfg.with.idle_names_epoch) ||
                            (w.state == job_state::committed && cfg.with.idle_names_epoch &&
                             cfg.with.committed_blocks_revoked);
        if (counts) return;
    }
    t.revoked |= static_cast<u8>(1U << e);
}

bool moves::done_in_blocking(int link, int slot) const {
    const link_state& l = now_->link[link];
    for (int g = 0; g < cfg.blocking(link); ++g) {
        const lease_word w = seen_at(l.group[slot][g], l.slot[slot].generation);
        if (w.state != lease_state::done && w.state != lease_state::skipped) return false;
    }
    return true;
}

int moves::window_end(int stage) const {
    int end = none;
    for (int k = 0; k < cfg.outputs(stage); ++k) {
        const int link = cfg.stages[stage].output[k];
        if (k == 0 || !cfg.seeded.window_of_first)
            end = std::min(end, now_->link[link].tail + cfg.links[link].window);
    }
    return end;
}

int moves::highest_tail(int stage) const {
    int tail = 0;
    for (int k = 0; k < cfg.outputs(stage); ++k)
        tail = std::max<int>(tail, now_->link[cfg.stages[stage].output[k]].tail);
    return tail;
}

slot_word* moves::filled(state& t, int lane, int output) const {
    const slot_register& o = t.output[lane][output];
    if (o.slot == none) return nullptr;
    const lane_registers& p = t.lane[lane];
    slot_word& w = t.link[cfg.stages[cfg.stage_of(cfg.lanes[lane])].output[output]].slot[o.slot];
    const bool mine = w.generation == o.generation && w.state == slot_state::fill && w.job == p.job &&
                      w.version == p.version;
    return mine ? &w : nullptr;
}

void moves::rest(state& t, int lane) {
    t.lane[lane] = {step::idle, gpu_work::no, none, none, none, 0};
    for (slot_register& i : t.input[lane]) i = {none, none};
    for (slot_register& o : t.output[lane]) o = {none, 0};
}

bool delivered(const setup& c, const state& s) {
    if (s.end == spoiled) return false;
    const unsigned goal = s.end == none ? static_cast<unsigned>(c.frames) : s.end;
    for (size_t k = 0; k < c.links.size(); ++k)
        for (int g = 0; g < c.links[k].consumers; ++g)
            if (s.link[k].consumed[g] != goal) return false;
    for (size_t k = 0; k < c.stages.size(); ++k) {
        if (s.committed[k] >> goal != 0) return false;
        const int stage = static_cast<int>(k);
        if (c.outputs(stage) == 0 && s.committed[k] != c.taken_below(stage, goal)) return false;
    }
    return true;
}

// A frame beyond the END that one source has claimed, made by another source that was ahead.
static bool is_surplus(const state& s, const slot_word& w) {
    return s.end < spoiled && w.state == slot_state::ready && w.ring_sequence >= s.end;
}

bool clean(const setup& c, const state& s) {
    if (!delivered(c, s) || (c.damages > 0 && s.damaged != none)) return false;
    for (size_t k = 0; k < c.links.size(); ++k)
        for (int x = 0; x < c.links[k].slots; ++x)
            if (const slot_word& w = s.link[k].slot[x]; w.state != slot_state::free && !is_surplus(s, w))
                return false;
    for (const stage_setup& t : c.stages)
        for (int n = 0; n < c.numbers && t.source >= 0; ++n)
            if (s.sequence_lease[t.source][n].state != lease_state::wait) return false;
    for (int j = 0; j < c.jobs(); ++j)
        if (s.job[j].state != job_state::idle && s.job[j].state != job_state::open) return false;
    return true;
}

}  // namespace carousel::model
