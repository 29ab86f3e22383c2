#pragma once
// The successors of one state. A rule calls next() for a copy of the state, changes it, and passes it on with
// emit(). Every change is one CAS (or one observation on which a later CAS relies), so a process may stop,
// die or be a zombie between any two.

#include <string>

#include "setup.hpp"

namespace carousel::model {

/// The kind of process that makes a step. Liveness asks what these can do without one another.
enum class actor : u8 { live, zombie, supervisor, gpu, consumer, helper, viewer, freer, fault, kill };
using actors = u16;
constexpr actors one(actor a) { return static_cast<actors>(1U << static_cast<unsigned>(a)); }

enum class failure : u8 {
    holds,
    torn,
    repeated,
    late_commit,
    spurious,
    order,
    innocent,  ///< safety
    stuck,
    viewer_blocks,
    waits_for_fence,  ///< liveness
    too_big,          ///< the search stopped at its limit
};
const char* name_of(failure f);

enum class action : u8 {
    start,
    gpu_writes,
    open,
    pick,
    choose,
    lease,
    second_lease,
    lost_lease,
    give_back,
    abandon,
    fill,
    launch,
    work,
    die_of_frame,
    submit,
    find_revoked,
    commit,
    find_helped,
    mark_ready,
    finish_input,
    finish_number,
    go_idle,
    acknowledge,
    instant_frame,
    declare,
    fence,
    hand_over,
    abort,
    requeue,
    quarantine,
    free_quarantined,
    finish_ready,
    finish_lease,
    recycle,
    begin_scan,
    scan,
    supervisor_dies,
    stop_sources,
    set_end,
    skip_absent,
    skip_untaken,
    revoke_lease,
    helper_sees,
    helper_seeks,
    helper_fired,
    helper_abandons,
    helper_commits,
    helper_late,
    helper_marks,
    helper_inputs,
    helper_idles,
    reads,
    finishes,
    reader_dies,
    passes,
    joins,
    leaves,
    viewer_sees,
    viewer_leases,
    viewer_misses,
    viewer_shows,
    viewer_discards,
    move_tail,
    free_begins,
    free_closes,
    free_checks,
    frees,
    freer_dies,
    claim_end,
    lower_end,
    slot_back,
    number_back,
    flip,
    repair
};
struct label {
    action what;
    u8 a = none, b = none;
};
std::string to_text(label l);

class successors {
public:
    virtual void take(const state& s, label l, actor acting, failure f, const std::string& why) = 0;

protected:
    ~successors() = default;
};

class moves {
public:
    moves(const setup& s, successors& out) : cfg(s), out_(out) {}
    void expand(const state& s);

    const setup& cfg;
    /// The state as every process sees it: a damaged word is masked.
    const state& now() const { return *now_; }
    /// The actual state, for the checks.
    const state& truth() const { return *truth_; }
    state& next() {
        next_ = *now_;
        return next_;
    }
    void emit(label l, actor acting);
    void fail(failure f, std::string why) {
        if (failure_ != failure::holds) return;
        failure_ = f;
        why_ = std::move(why);
    }

    // Helpers that several rules use.
    [[nodiscard]] bool running(int e) const { return now_->incarnation[e].alive == process_state::running; }
    [[nodiscard]] bool declared(int e) const { return now_->incarnation[e].declared != 0; }
    [[nodiscard]] bool fenced(int e) const { return now_->incarnation[e].fenced != 0; }
    /// Newest started incarnation on e's seat: its successor.
    [[nodiscard]] int successor(int e) const;
    /// The lane that works on (job, version) of incarnation e, or -1 (a ghost's view).
    [[nodiscard]] int lane_of(const state& s, int job, int version, int e) const;
    /// The authoritative CAS: J -> COMMITTED, with the ghosts' checks.
    void commit(state& t, int job, int version, int e);
    /// FILL -> READY, with the check that no frame appears twice.
    void make_ready(state& t, int link, int slot);
    /// LEASED(lap) -> WAIT(lap + 1).
    static void number_done(lease_word& w) {
        w = {static_cast<u8>(w.generation + 1), lease_state::wait, none, none, 0};
    }
    static void group_done(lease_word& w) { w = {w.generation, lease_state::done, none, none, 0}; }
    /// Ghost: the supervisor's pass over e's words is complete.
    void note_revoked(state& t, int e) const;
    /// A lease word as it reads for a slot of this generation: a stale one reads as WAIT.
    [[nodiscard]] static lease_word seen_at(const lease_word& w, u8 generation) {
        return w.generation == generation || w.state == lease_state::damaged
                   ? w
                   : lease_word{generation, lease_state::wait, none, none, 0};
    }
    [[nodiscard]] bool done_in_blocking(int link, int slot) const;
    /// First sequence for which some output of the stage has no room: T + N of the narrowest.
    [[nodiscard]] int window_end(int stage) const;
    /// The highest of the outputs' tails: all below it are committed.
    [[nodiscard]] int highest_tail(int stage) const;
    /// The slot that the lane has filled at that output, if the lane still owns it.
    [[nodiscard]] slot_word* filled(state& t, int lane, int output) const;
    /// The lane's step is over.
    static void rest(state& t, int lane);

private:
    void normalise(state& t) const;

    successors& out_;
    const state* now_ = nullptr;
    const state* truth_ = nullptr;
    state masked_{};
    state next_{};
    failure failure_ = failure::holds;
    std::string why_;
};

// The rules, one file per kind of process.
void stage_rules(moves& m);
void input_rules(moves& m, int lane);   ///< a reading stage's choice and leases
void number_rules(moves& m, int lane);  ///< a source's choice and lease
void instant_rules(moves& m);
void supervisor_rules(moves& m);
void ending_rules(moves& m);
void claim_rules(moves& m);                 ///< the supervisor's part of a stream's end
void stream_end_rules(moves& m, int lane);  ///< the source's part of it
/// The lane's frame is beyond the end of its source's stream.
[[nodiscard]] bool stream_has_ended(const moves& m, int lane);
void helper_rules(moves& m);
void consumer_rules(moves& m);
void latest_rules(moves& m);
void free_rules(moves& m);
void damage_rules(moves& m);
void mask_word(const setup& c, state& s, int index);
bool same_word(const setup& c, const state& a, const state& b, int index);
void copy_word(const setup& c, const state& from, state& to, int index);
/// A damaged word is one that the incarnation's jobs may have tagged.
[[nodiscard]] bool tags_unknown(const moves& m, int e);

/// Every frame has reached every consumer exactly once.
bool delivered(const setup& c, const state& s);
/// ... and nothing is leased, filled, quarantined or unfinished.
bool clean(const setup& c, const state& s);

}  // namespace carousel::model
