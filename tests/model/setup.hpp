#pragma once
// The explored state space: a small pipeline, the faults that may occur in it, the clauses of the protocol
// that are left out and the bugs that are seeded. `layout` lists the bytes of a state that can differ in a
// set-up, so that stored states are small.

#include <string>
#include <vector>

#include "state.hpp"

namespace carousel::model {

/// Clauses of the protocol; a test leaves one out and expects a failure.
struct clauses {
    /// a helper commits only from SUBMITTED, published after the event's record
    bool help_from_submitted = true;
    bool idle_names_epoch = true;  ///< IDLE names the only epoch that may open it
    bool close_latest = true;      ///< a free closes the WAIT of the latest columns before the slot is freed
    bool close_empty_columns = true;  ///< also those of columns that have no member at present
    bool window_and_tail = true;      ///< the tail word, advanced before the free, and n < T + N at the lease
    bool read_again = true;           ///< a failed commit is read again: COMMITTED = a helper committed
    bool event_by_epoch = true;       ///< the imported event is that of the epoch that J names
    /// an incarnation is revoked only when no COMMITTED word has its epoch either
    bool committed_blocks_revoked = true;
    bool own_domain = true;      ///< a helper commits only for incarnations of its own MPS domain
    bool helper_minimal = true;  ///< a helper commits and marks its own slot READY, nothing else
    bool in_order_lease = true;  ///< a group's lowest frame is waited for, never skipped
    /// a sink does not skip a frame that its dead predecessor still has leased
    bool sink_waits_for_predecessor = true;
    bool sink_commits_in_order = true;
    bool blame_only_alone = true;  ///< a death counts against a frame only if it was the only one in flight
    bool parity = true;            ///< a word that is wrong by one bit is invalid
    bool recycle_waits =
        true;  ///< a job word is recycled only when every word is intact that it may have tagged
    bool damaged_pins = true;  ///< a damaged latest column pins its slot, as a lease does
    bool owner_waits =
        true;  ///< an owner waits for the repair of a word of its own, and does not treat it as anything else
    bool recycle_last = true;  ///< job words are recycled only when no lease of that incarnation is left
    /// a frame that a stage does not take is closed in its column by any process
    bool close_untaken = true;
    bool skip_untaken = true;  ///< a stage leases no frame that it does not take
};

/// Seeded bugs: each must be found.
struct bugs {
    bool adopter_forgets = false, free_before_fence = false, source_counter = false,
         commit_before_done = false;
    bool fault_fires_event = false, revoke_first = false, requeue_before_abort = false, drop_frame = false,
         no_process_finishes = false;
    bool recycle_before_fence = false, helper_ignores_version = false, helper_half = false,
         latest_must_read = false, keeps_last_slot = false, keeps_any = false;
    bool free_then_tail = false, join_keeps_first = false, end_of_one_source = false,
         end_skips_unrevoked = false;
    bool keeps_stopping = false, any_claim = false, early_give_back = false;
    // Bugs of a stage with two outputs: what is done for the first one only, or too early.
    bool event_of_first = false, event_of_own_slot = false, window_of_first = false,
         idle_before_second = false;
    bool quarantine_first = false, finish_first = false, give_back_first = false;
};

struct stage_setup {
    int source = -1;  ///< index of its numbers, or -1
    int input[max_inputs] = {-1, -1};
    int output[max_outputs] = {-1, -1};  ///< links; none: a sink
    /// its stream ends before that frame, or -1: it doesn't end (two_step_lease, not an instant stage)
    int ends_at = -1;
    bool end_is_published = false;  ///< the supervisor may know that, and lower END without a claim
    int every = 1;                  ///< it takes the multiples of this only (a sink)
    bool instant = false;  ///< makes each frame in one indivisible step: scaffolding for the stage under test
};

struct link_setup {
    int slots = 3, window = 2;
    int consumers = 1;        ///< plain blocking groups: they read in order and have no job words
    u8 quick = 0;             ///< bit k: consumer k leases and finishes in one step
    int latest = 0;           ///< latest columns
    bool quick_free = false;  ///< a free is one step (sound only where no latest column is)
};

struct incarnation_setup {
    int seat, next;  ///< next: its successor, or -1: it never dies
    int domain = 0;  ///< its MPS domain
};

/// The words in which a bit may flip.
enum class struck : u8 { any, jobs, leases, slots, tails };

enum class ending : u8 { known, two_phases, lowest_unleased };

struct setup {
    std::vector<stage_setup> stages;
    std::vector<link_setup> links;
    std::vector<int> seat_stage;
    std::vector<incarnation_setup> incarnations;
    std::vector<int> lanes;  ///< incarnation of each job in flight
    int jobs_a_seat = 2;
    int numbers = 2;  ///< number words per source
    int frames = 2;
    int helper_link = -1;         ///< an observing consumer helps on this link, or -1
    int helper_domain = 0;        ///< the MPS domain of that consumer
    bool scan_registers = false;  ///< the supervisor scans word by word and may die between any two
    bool quick_work = false;      ///< fill to submit in one step, the GPU included: for set-ups about leases
    bool quick_gpu = false;       ///< the GPU writes at the launch
    bool quick_finish = false;    ///< a live owner's step 6 is one step
    bool revocable = false;       ///< anyone may revoke a latest lease
    bool early_finish = true;  ///< COMMITTED of a dead incarnation is finished without waiting for the fence
    bool freer_dies = false, consumers_die = false;
    bool lowest_first = false;        ///< a source takes its lowest number only
    bool two_step_lease = false;      ///< a source reads T, END and the number first; its CAS is a later step
    int lap_modulus = 256;            ///< laps are compared modulo this
    bool last_group_absent = false;   ///< the supervisor may close the last plain consumer's words
    bool membership_changes = false;  ///< latest members join and leave
    /// the newest frame stays while a latest member has WAIT for it and another slot is FREE; if this is
    /// false a free may come at any time, which is all that omitting this check allows
    bool keeps_newest = false;
    ending end = ending::known;
    int damages = 0;  ///< how often a bit of a word flips
    struck strikes = struck::any;
    int poison = -1;  ///< a frame that kills every process which works on it
    int attempts_cap = 1;
    int outside_kills = 99;
    bool check_no_fence = false;  ///< also checks that everything is delivered even if no kill ever completes
    bool kills_never_complete = false;  ///< no fence at all: then only delivery is checked
    clauses with;
    bugs seeded;

    [[nodiscard]] int seats() const { return static_cast<int>(seat_stage.size()); }
    [[nodiscard]] int jobs() const { return seats() * jobs_a_seat; }
    [[nodiscard]] int job_stage(int job) const { return seat_stage[job / jobs_a_seat]; }
    [[nodiscard]] int stage_of(int incarnation) const { return seat_stage[incarnations[incarnation].seat]; }
    [[nodiscard]] int inputs(int stage) const {
        return (stages[stage].input[0] >= 0) + (stages[stage].input[1] >= 0);
    }
    [[nodiscard]] int outputs(int stage) const {
        return (stages[stage].output[0] >= 0) + (stages[stage].output[1] >= 0);
    }
    [[nodiscard]] bool has_readers() const;
    /// Columns of a link: plain consumers, then reading stages, then latest.
    [[nodiscard]] int readers(int link) const;
    [[nodiscard]] int blocking(int link) const { return links[link].consumers + readers(link); }
    [[nodiscard]] int groups(int link) const { return blocking(link) + links[link].latest; }
    [[nodiscard]] int column(int link, int stage) const;
    [[nodiscard]] bool any_latest() const;
    /// The frames below `end` that the stage takes, one bit each.
    [[nodiscard]] unsigned taken_below(int stage, unsigned end) const {
        unsigned frames = 0;
        for (unsigned n = 0; n < end; n += static_cast<unsigned>(stages[stage].every)) frames |= 1U << n;
        return frames;
    }
    /// Throws std::invalid_argument if the pipeline does not fit the model's arrays.
    void validate() const;
};

state initial_state(const setup& s);

class layout {
public:
    explicit layout(const setup& s);
    [[nodiscard]] size_t size() const { return bytes_.size(); }
    /// Writes up to 7 bytes past `out` + size().
    void pack(const state& s, u8* out) const;
    void unpack(const u8* in, state& s) const;

private:
    struct run {
        u16 from, bytes;  ///< of the state; at most 8
    };
    state start_;
    std::vector<u16> bytes_;
    std::vector<run> runs_;
};

/// One line about a state, for traces.
std::string describe(const setup& c, const state& s);

}  // namespace carousel::model
