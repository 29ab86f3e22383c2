#pragma once
// A sink's ledger: one record per frame; the supervisor computes lost frames, repeated frames, and one hash
// over all pictures from these records. The ledger is deliberately separate from the protocol's own words,
// because the protocol cannot verify itself.
// Threading: the writer belongs to a sink's process (the runner's completion thread) and, for marks on behalf
// of dead processes, to the supervisor; the reader can be used by any process, also during the run. Several
// writers of one file (instances, a successor concurrent with its dying predecessor) do not interfere: each
// frame's record has its own place in the file; in that place the record and the mark are different bytes,
// and each of the two is written by one pwrite(2). A predecessor that was stopped and then continued may
// overwrite its successor's record with its own late record, which was computed from a buffer that already
// contained another frame. Therefore the mark also contains the hash, which the committing process takes from
// its own memory; no other process writes this mark.
// Layout of `<runtime directory>/ledger-<stage>.bin`, little-endian: the record of sequence n at byte 64 n,
// see ledger_record. A full disk or a kill cuts a write at a page boundary. No record crosses a page, so
// neither of them leaves half a record or half a mark; and if a record was written, there is also space for
// its mark. A hole reads as zeros; therefore one field contains sequence + 1, which is never zero. Old
// delivered records are folded (ledger_fold.hpp). `<ledger>.names` lists the names of the hashes'
// definitions, one per line; in each record, the tag of the hash's name (ledger_tag) is stored together with
// the flags. A name is appended in one write(2) before the first record with its tag, so a kill leaves no
// record without its name. A name may be listed twice if two writers begin at the same time. Hashes with
// different names are never compared.
// Order: record(), the frame's commit (its job word becomes COMMITTED), mark_committed(), and only then the
// remaining steps (the input DONE, the job word IDLE). What a crash leaves:
//   before record():            nothing; the frame is delivered again.
//   between record and commit:  a record without a mark; the job word is aborted, the frame delivered again,
//                               and its record rewritten.
//   between commit and mark:    a record without a mark, and a job word that is still COMMITTED, because a
//                               word advances only after the mark. The process that revokes the dead process
//                               reads that word before it changes the word, and writes the mark on behalf of
//                               the dead process: mark_committed_by_supervisor(), with the hash of the record
//                               if the dead process wrote that record. A record that another process has
//                               overwritten meanwhile provides no hash: the frame is only counted.
//   after the mark:             the mark.
// So at the end of a run each committed frame has a mark with the incarnation that committed it, regardless
// of the point at which its process died. This has two consequences, which do not depend on the way in which
// recovery changes the words afterwards:
//   Every loss is found: a frame without a mark was not committed by any process. Such a frame is lost,
//   whether or not it has a record. (A recovery that mistakes the dead process's lease for DONE
//                           leaves exactly this: a record without a mark.)
//   Every repeat is found:  a commit that finds a mark is a repeat, whether the incarnation itself or the
//                           supervisor wrote that mark. (A recovery that discards a COMMITTED frame leaves
//                           the supervisor's mark; the second commit finds that mark.)
// One case is not a repeat: an incarnation that was stopped between its commit and its mark, and writes a
// mark that the supervisor has already written.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.hpp"

namespace carousel::telemetry {

struct ledger_record {
    u64 sequence_plus_1 = 0;  ///< 0: no record
    u64 recorded_hash = 0;    ///< hash that the record's writer intends to commit
    u32 recorded_flags = 0;   ///< ledger_tombstone, or ledger_no_hash, or the tag of the hash's name
    u32 writer = 0;           ///< the incarnation that last wrote the record (ledger_committer)
    // The mark.
    u32 committer = 0;  ///< the incarnation that last committed the frame; 0: none
    u32 commits = 0;    ///< number of commits, plus the flag ledger_marked_by_supervisor
    u64 hash = 0;       ///< set by the stage (frame::set_hash); 0 for a tombstone frame
    u32 flags = 0;      ///< as recorded_flags
    u32 reserved[5] = {};
};
static_assert(4096 % sizeof(ledger_record) == 0, "no record crosses a page");
inline constexpr u32 ledger_tombstone = 1;
inline constexpr u32 ledger_no_hash = 2;  ///< the stage provides no hash; the frame is only counted
/// flag in `commits`: the supervisor wrote the mark for a process that died before writing it
inline constexpr u32 ledger_marked_by_supervisor = 0x8000'0000U;

/// The default name, for a hash whose definition is known only to the stage.
inline constexpr std::string_view own_hash_name = "own";
struct frame_hash {
    std::optional<u64> value;
    std::string_view name = own_hash_name;  ///< one line of at most 100 bytes
    // NOLINT: implicit conversion of a number, which is the stage's own hash
    frame_hash(u64 hash, std::string_view of = own_hash_name) : value(hash), name(of) {}
    frame_hash(std::nullopt_t /*none*/) {}  // NOLINT: implicit conversion; the frame is only counted
};
/// Returns the tag of a hash name: 30 bits above the two flags, never 0.
[[nodiscard]] u32 ledger_tag(std::string_view name) noexcept;
[[nodiscard]] constexpr u32 tag_of(u32 flags) noexcept {
    return flags & ~(ledger_tombstone | ledger_no_hash);
}

/// Identifies one process on one seat: its epoch (24 bits, from 1) and the seat.
[[nodiscard]] constexpr u32 ledger_committer(u32 seat, u32 epoch) noexcept {
    return seat << 24U | (epoch & 0xFF'FFFFU);
}
[[nodiscard]] constexpr bool is_marked(const ledger_record& r) noexcept {
    return r.sequence_plus_1 != 0 && r.committer != 0;
}
[[nodiscard]] constexpr u32 commits_of(const ledger_record& r) noexcept {
    return r.commits & ~ledger_marked_by_supervisor;
}

/// Path of a stage's ledger.
[[nodiscard]] std::string ledger_path(const std::string& runtime_directory, const std::string& stage);
/// Path of the file with the names of a ledger's hashes.
[[nodiscard]] std::string ledger_names_path(const std::string& ledger);

class ledger_writer {
public:
    /// Opens or creates the file. Throws output_error with the failure, the path and a remedy.
    explicit ledger_writer(std::string path);
    ~ledger_writer();
    ledger_writer(const ledger_writer&) = delete;
    ledger_writer& operator=(const ledger_writer&) = delete;

    /// Writes the record of one frame; to be called before the commit. Keeps the mark of an earlier delivery.
    /// Throws output_error if the record can't be written (disk full).
    void record(u64 ring_sequence, const frame_hash& hash, bool is_tombstone, u32 committer);
    /// Marks a successful commit by this incarnation; to be called before any other step on the frame, with
    /// the arguments of record(). Throws output_error.
    void mark_committed(u64 ring_sequence, const frame_hash& hash, bool is_tombstone, u32 committer);
    /// Marks a commit after the supervisor has found the job word of the dead `committer` COMMITTED.
    /// Idempotent. Returns false if the frame has no record. Throws output_error.
    bool mark_committed_by_supervisor(u64 ring_sequence, u32 committer);

private:
    [[nodiscard]] ledger_record read(u64 ring_sequence) const;
    void write(const void* bytes, u64 count, u64 offset) const;
    void write_mark(u64 ring_sequence, ledger_record r) const;
    void name_hashes(std::string_view name);

    std::string path_;
    int fd_ = -1;
    std::string named_;  ///< the last name that is known to be in the file of names
};

struct ledger_summary {
    u64 records = 0;               ///< frames of the range that have a record and have not bypassed the sink
    u64 lost = 0;                  ///< frames of the range that the sink has a claim on and has not committed
    u64 passed = 0;                ///< frames of the range that bypassed the sink
    u64 repeated = 0;              ///< commits in addition to the first commit of each frame
    u64 tombstones = 0;            ///< frames that were abandoned upstream
    u64 unmarked = 0;              ///< lost frames that have a record, but were not committed
    u64 marked_by_supervisor = 0;  ///< marks that the supervisor wrote for dead processes
    u64 without_hash = 0;          ///< frames whose record has no hash
    u64 folded = 0;                ///< frames of the range whose records have been folded
    u64 image_hash = 0;  ///< XXH3_64bits over the range's hashes (u64, little-endian) in the order of the
                         ///< sequence; the hash of a tombstone or lost frame counts as 0
    std::vector<u64> tombstone_sequences = {};  ///< the newest 1000
    /// tags of the range's hashes, in order of appearance, limited to the first few; if there is more than
    /// one, there is no image_hash
    std::vector<u32> hash_tags = {};
    std::vector<std::string> hash_names = {};  ///< names of those tags; filled in by ledger_reader
};

class ledger_reader {
public:
    /// Empty if there is no such file, because the sink has not begun. Throws output_error if it can't be
    /// opened.
    [[nodiscard]] static std::optional<ledger_reader> open(const std::string& path);
    ~ledger_reader();
    ledger_reader(ledger_reader&& other) noexcept;
    ledger_reader& operator=(ledger_reader&&) = delete;

    /// The records of [first, first + count); records that are beyond the end of the file, or folded, are
    /// empty. Throws output_error.
    [[nodiscard]] std::vector<ledger_record> read(u64 first, u64 count) const;
    /// Length of the file in frames: the highest recorded sequence + 1.
    [[nodiscard]] u64 size() const;
    /// Returns the lowest sequence, not below `from`, of a frame that the sink has a claim on and that has no
    /// mark: no commit of that frame is known, so the frame still has to be delivered, possibly for the
    /// second time. Returns no_frame if all claimed frames have a mark and the claim is suspended. Reads only
    /// files, independent of the control block. Throws output_error.
    [[nodiscard]] u64 first_undelivered(u64 from) const;
    /// The summary of the frames [0, end), including folded ones. Throws output_error. Hashes without a name,
    /// as written by older builds, are also an error, because it is unknown with which other hashes they may
    /// be compared.
    [[nodiscard]] ledger_summary summarize(u64 end) const;

private:
    ledger_reader(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
    std::string path_;
    int fd_ = -1;
};

/// XXH3_64bits: the hash of a picture's bytes.
[[nodiscard]] u64 hash_bytes(std::span<const std::byte> bytes) noexcept;

// The claims of a sink: the frames that must be delivered to it. The file of claims is the only record of
// which sinks must get which frames. A sink has a claim on every frame, except on ranges of frames that
// bypass the sink according to one of these rules:
//   - a sink that may miss frames (group = "latest", or a port with vacant = "skip"): it never has a claim;
//   - an optional sink that has failed: this sink has no claim until it is started again;
//   - a sink with `every` = N: it has a claim only on frames whose number is a multiple of N.
// A frame without a claim is neither awaited nor lost. The supervisor (stores/ledger_store.hpp) sets the
// claims and is the only writer. The supervisor, its successor, the report, and the stage that acknowledges
// frames to another host (runner/delivered.hpp) read the same file, so that they cannot disagree. Damage or a
// rebuild of the control block has no effect on the claims.
// `<ledger>.unclaimed` is text: "every N", if N is not 1; then a range of frames per line, "FIRST END", in
// ascending order. "FIRST -" is the last line while the claim is suspended. The file is replaced as a whole
// (temporary file, rename), so a crash leaves the previous or the next text. A claim is suspended before
// frames may bypass the sink, and resumed when no frame can bypass it any more: a crash in between leaves a
// suspended claim, which the next supervisor resumes.

/// Value instead of a frame number if the sink has no claim on any frame.
inline constexpr u64 no_frame = ~u64{0};

class frame_claims {
public:
    /// Loads the claims of the sink with this ledger. Without a file the sink has a claim on every frame.
    /// Throws output_error if the file cannot be read or is not valid.
    [[nodiscard]] static frame_claims load(const std::string& ledger);
    /// Throws output_error; the previous claims then remain valid.
    void save(const std::string& ledger) const;

    [[nodiscard]] bool includes(u64 frame) const noexcept { return first_from(frame) == frame; }
    /// The lowest claimed frame that is not below `frame`; no_frame if there is none.
    [[nodiscard]] u64 first_from(u64 frame) const noexcept;
    [[nodiscard]] bool suspended() const noexcept;
    /// The number of frames below `end` without a claim.
    [[nodiscard]] u64 unclaimed_below(u64 end) const noexcept;

    /// Limits the claim, for the whole run, to frames whose number is a multiple of `every`; 1: no limit.
    void take_every(u64 every) { every_ = every; }
    [[nodiscard]] u64 every() const noexcept { return every_; }
    /// Ends the claim on frames from `first` on. Does nothing while the claim is suspended.
    void suspend(u64 first);
    /// Starts a claim on frames from `first` on. Does nothing unless the claim is suspended.
    void resume(u64 first);
    /// Called if the frames from `first` on are produced again: the sink receives them, unless its claim is
    /// suspended.
    void produced_again_from(u64 first);

private:
    struct range {
        u64 first, end;  ///< end: no_frame while the claim is suspended
    };
    [[nodiscard]] u64 taken_below(u64 end) const noexcept { return end / every_ + (end % every_ != 0); }

    std::vector<range> unclaimed_;
    u64 every_ = 1;
};

/// Path of the file with the claims of the sink that writes the ledger.
[[nodiscard]] std::string claims_path(const std::string& ledger);

/// A sink of a run.
struct counted_sink {
    std::string name;
    u64 without_ledger;  ///< while the sink has no ledger: the first frame that it has yet to deliver
};
/// A frame that a sink has a claim on and has not delivered.
struct undelivered_frame {
    u64 frame = no_frame;  ///< no_frame: no sink has an open claim
    std::string sink;
};
/// Returns the lowest frame, not below `from`, that at least one of the sinks has a claim on and has not
/// delivered. Every lower frame is therefore in the files of all sinks that have a claim on it. The result is
/// correct even if claims are resumed concurrently. Reads only files. Throws output_error.
[[nodiscard]] undelivered_frame find_undelivered(const std::string& runtime_directory,
                                                 const std::vector<counted_sink>& sinks, u64 from);

}  // namespace carousel::telemetry
