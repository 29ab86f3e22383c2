#pragma once
// One incarnation's side of the protocol: from choosing a frame until the job word is recycled. One object
// per process; begin() and submit() are called by its main thread, commit() and complete() by its completion
// thread (the two threads use disjoint jobs).
//
// The steps of a job, and what a crash leaves after each (recovery.hpp, in the supervisor, repairs all of
// them):
//   begin     J IDLE -> OPEN          no other word: the word is aborted and recycled
//             C or Q WAIT -> LEASED   the frame is tagged with (job, version): requeued
//             S FREE -> FILL          the slot is tagged: quarantined until the fence, then freed. This step
//                                     is done at one output after the other, as are the headers, READY and
//                                     FREE below.
//   submit    J OPEN -> SUBMITTED     all work is enqueued and the event recorded. The GPU may still write;
//                                     quarantine covers these writes. From here on consumers may commit,
//                                     after they have found the event complete.
//   commit    J SUBMITTED -> COMMITTED  the frame has happened. The supervisor finishes a dead owner's
//                                       remaining steps.
//   complete  S FILL -> READY, C LEASED -> DONE, J -> IDLE(version+1): in this order, so that a process that
//             finds the job word recycled knows that no word is tagged with the old version any more.
// Sync points: SUBMITTED (release) publishes the header, including metadata, and the event record to helpers
// (acquire); COMMITTED publishes the payload of the CPU backend, whose event word was read with acquire.

#include <array>
#include <optional>

#include "ring/link.hpp"

namespace carousel::ring {

enum class outcome : u8 {
    ok,
    empty,     ///< there is no frame to work on yet
    full,      ///< the window or the buffers of an output are used up by frames that wait for their readers
    own_work,  ///< earlier frames of this stage must complete first, because a suspect frame must run alone,
               ///< because the output waits for one of them, or because all input frames or job words are in
               ///< use
    closed,    ///< every frame of the run has passed this stage: the process exits with 0
    stopping,  ///< for a source: leases no more numbers until END is known
    revoked,   ///< the seat has a successor: the process calls _exit(exit_code::revoked) and touches nothing
};

/// A frame in progress. Plain data, owned by the runner. If `tombstone_stage` is set, the stage passes on a
/// tombstone frame and does not call process().
struct job : shm::frame_meta {
    u32 index = shm::none;
    u64 version = 0;
    u64 ring_sequence = 0;
    slot_ref input[shm::max_inputs];
    u64 input_lease[shm::max_inputs] = {};  ///< the exact LEASED words
    u32 inputs = 0;
    u32 sequence_index = shm::none;  ///< for a source: index of the number's word
    u64 sequence_lease = 0;
    slot_ref output[shm::max_outputs];
    slot_ref previous;  ///< of a stage with state: the slot of the state before this frame's; empty: this
                        ///< is the first frame, or there is a gap before it
    u32 previous_epoch = shm::none;  ///< in the header of that slot
    bool alone = false;              ///< suspect frame: no other frame may be in flight at the same time
    u64 claimed_ns = 0, submitted_ns = 0;
    alignas(8) std::byte parameters[shm::max_parameter_bytes] = {};  ///< the first parameter_box::bytes
};

/// Writes the producer's own data of the frame into the header. Called again before each seal, so that a
/// value that another process has written into the header in the meantime is overwritten. May be called by
/// the owner of the FILL word, or by the owner of a job that no helper can commit.
void enter(const job& j, u32 seat, u32 epoch, u32 parameter_bytes, shm::frame_header& h) noexcept;

class worker {
public:
    worker(shm::control_block& c, u32 seat, u32 entry, u32 epoch) noexcept;

    /// Records the newest frame of a sampled input, for the headers of the frames that begin from now on; no
    /// protocol step depends on it. Called by the thread that calls begin().
    void note_sampled_frame(u32 index, u64 ring_sequence) noexcept {
        if (index < shm::max_sampled_inputs) sampled_frame_[index] = ring_sequence;
    }
    /// Chooses a frame and takes it (S1 to S3). `in_flight`: number of jobs of this process that are not yet
    /// completed. On `ok` the caller must either call submit() for the job later, or end the process.
    [[nodiscard]] outcome begin(job& out, u32 in_flight) noexcept;
    /// Returns the result that begin() would have now, without taking anything: `ok` if there is a frame.
    /// Valid only at the moment of the call.
    [[nodiscard]] outcome peek(u32 in_flight) noexcept;
    /// Like peek(in_flight), and also sets `ring_sequence` to the frame that begin() would take.
    [[nodiscard]] outcome peek(u32 in_flight, u64& ring_sequence) noexcept;
    /// For a source: returns the first number that is not committed; all lower numbers are committed.
    [[nodiscard]] u64 done_below() const noexcept;
    /// Replaces begin() for a source whose next frame is not due yet. Returns `stopping` (acknowledged) or
    /// `closed` in the same cases as begin(), `empty` while END is damaged, and `ok` in all other cases;
    /// never takes anything.
    [[nodiscard]] outcome await_due() noexcept;
    /// Records the start of process() in the job's own record, for display. Deadlines use the words of
    /// shm::incarnation.
    void start_clock(const job& j) noexcept;
    /// The CAS of S4; called after the event is recorded. Returns false if the incarnation is revoked, or if
    /// an input's header no longer matches its seal, so that the output made from this input may be wrong. In
    /// both cases the process must end; the frame is then made again.
    [[nodiscard]] bool submit(job& j) noexcept;
    /// Returns true if the headers of the job's inputs belong to the job's frame and match their seals.
    [[nodiscard]] bool inputs_are_whole(const job& j) const noexcept;
    /// S5 by the owner; called after the event has completed. Returns true if the job is committed, by this
    /// call or by a helper; false if the incarnation is revoked.
    [[nodiscard]] bool commit(job& j) noexcept;
    /// S6. Returns false if the incarnation is revoked (nothing is lost: the supervisor completes the job).
    bool complete(job& j) noexcept;
    /// E1, instead of submit(): a source reports that its stream ends before the job's frame. `ok`: END is at
    /// most the job's number, and the caller must give the job back. `empty`: END is not known yet, and the
    /// caller must call this again when the stage's doorbell next rings. `revoked`: see `outcome`.
    [[nodiscard]] outcome end_stream(const job& j) noexcept;
    /// E3: gives back the slots and the number of a frame that does not exist. Called after END excludes that
    /// frame, when no process writes into the slots any more. Returns false if revoked.
    [[nodiscard]] bool give_back(const job& j) noexcept;

    [[nodiscard]] u64 tag(const job& j) const noexcept { return event_tag(j.index, j.version, epoch_); }
    [[nodiscard]] shm::stage_block& stage() const noexcept { return *stage_; }
    [[nodiscard]] u32 stage_index() const noexcept { return stage_index_; }
    [[nodiscard]] u32 epoch() const noexcept { return epoch_; }
    /// Called when a standby takes over its seat: sets the epoch whose words it may change. Allowed only
    /// before the first begin().
    void set_epoch(u32 epoch) noexcept { epoch_ = epoch; }
    /// 0: a sink.
    [[nodiscard]] u32 outputs() const noexcept { return outputs_; }
    /// True if the last output is the ring of the stage's states. State n is computed from state n - 1 and
    /// frame n, and is committed by the job word of frame n.
    [[nodiscard]] bool has_state() const noexcept { return has_state_; }
    [[nodiscard]] link_ref& output(u32 k) noexcept { return *output_[k]; }
    [[nodiscard]] link_ref& input(u32 i) noexcept { return *input_[i]; }
    [[nodiscard]] bool revoked() const noexcept;
    /// The ring because of which begin() or peek() last returned `empty` or `full`: an input without the next
    /// frame, or an output without room. None: the result had another reason, or there was a frame to begin.
    [[nodiscard]] u32 blocking_link() const noexcept { return blocking_link_; }
    /// From now on, begin() begins no frame that lies `frames` or more beyond an output's tail: a soft bound
    /// within the ring's window. The bound is local to this process, is not a word of the ring, and may
    /// change at any time. Must be at least 1, so that the oldest frame can always begin. Called by the
    /// thread that calls begin().
    void reach(u32 frames) noexcept { reach_ = frames > 0 ? frames : 1; }

private:
    [[nodiscard]] outcome check_end(u64 end) noexcept;
    [[nodiscard]] u64 within(const link_ref& output) const noexcept;
    [[nodiscard]] const link_ref* without_room(u64 ring_sequence) const noexcept;
    [[nodiscard]] outcome choose(job& j, u32 in_flight) noexcept;
    [[nodiscard]] outcome choose_ring_sequence(job& j, u32 in_flight) noexcept;
    [[nodiscard]] outcome choose_inputs(job& j, u32 in_flight) noexcept;
    [[nodiscard]] outcome no_frame(const link_ref& input) noexcept;
    [[nodiscard]] outcome no_room(const link_ref& output, u64 ring_sequence) noexcept;
    [[nodiscard]] bool lease_all(job& j) noexcept;
    [[nodiscard]] outcome fill(job& j) noexcept;
    [[nodiscard]] bool write_header(job& j) noexcept;
    void write_header_at(job& j, u32 output) noexcept;
    void seal_headers(const job& j) noexcept;
    void forward_metadata(const job& j, shm::frame_header& to) noexcept;
    [[nodiscard]] const shm::frame_header& input_header(const job& j, u32 i) const noexcept {
        return input_[i]->header(j.input[i].index);
    }
    [[nodiscard]] bool abandon(job& j, u32 leased) noexcept;
    [[nodiscard]] bool is_mine(const lease_word& w) const noexcept;
    void take_attempts(job& j, const lease_word& w) noexcept;
    [[nodiscard]] outcome find_previous(job& j) noexcept;
    [[nodiscard]] bool previous_is_whole(const job& j) const noexcept;

    shm::control_block* control_;
    shm::stage_block* stage_;
    u32 seat_, entry_, epoch_, stage_index_;
    u32 first_job_, jobs_;
    // Copies of static parts, with which words are addressed: a part that is damaged later makes no process
    // write to other words.
    u32 inputs_, source_;
    std::array<u32, shm::max_inputs> group_{};
    u32 reach_ = shm::max_window;
    u32 blocking_link_ = shm::none;
    std::array<u64, shm::max_sampled_inputs> sampled_frame_;
    bool has_state_;
    slot_ref newest_state_;  ///< the slot that this process has filled last in the ring of its states
    bool in_order_;  ///< a sink with one instance: commits a predecessor's frame before the frames that
                     ///< follow it
    std::optional<link_ref> input_[shm::max_inputs];
    std::optional<link_ref> output_[shm::max_outputs];
    u32 outputs_;
};

}  // namespace carousel::ring
