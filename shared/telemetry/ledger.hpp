#pragma once
// A sink's ledger: one record a frame, from which the supervisor computes what was lost, what was repeated,
// and one hash over all pictures. It is kept apart from the protocol's own words on purpose: the protocol
// can't be its own witness.
//
// Who may call: the writer belongs to a sink's process (the runner's completion thread) and, for the marks of
// the dead, to the supervisor; the reader to any process, also during the run. Several writers of one file
// (instances, a successor beside its dying predecessor) don't disturb each other: each record has its own
// place, and record and mark are different bytes of it, written by one pwrite(2) each. A predecessor that was
// stopped and wakes may write its late record over its successor's: of a buffer that holds another frame by
// then. So the mark bears the hash again, from the memory of the one that committed; nobody else writes it.
//
// Layout of `<runtime directory>/ledger-<stage>.bin`, little-endian: the record of sequence n at byte 64 n,
// see ledger_record. No record crosses a page, so that neither a full disk nor a kill, which both cut a write
// at a page, leaves half a record or half a mark; and a mark finds room wherever its record did. A hole reads
// as zeros, hence the field that is sequence + 1. What is delivered and old is folded away (ledger_fold.hpp).
// `<ledger>.names` lists what the hashes are hashes of, a name per line; a record has its name's tag
// (ledger_tag) next to its flags. A name is appended in one write(2) before the first record that has its
// tag, so that a kill leaves no record without its name. It may stand there twice, when two writers begin at
// once. Hashes of two names are never compared.
//
// Order: record(), the frame's commit (its job word becomes COMMITTED), mark_committed(), and only then the
// rest (the input DONE, the job word IDLE). What a death leaves:
//   before record():            nothing; the frame is delivered again.
//   between record and commit:  a record without the mark; the job word is aborted, the frame delivered
//                               again, its record rewritten.
//   between commit and mark:    a record without the mark, and a job word that still says COMMITTED, because
//                               a word moves on behind the mark only. Whoever revokes the dead reads that
//                               word before anything else is done to it, and makes the mark on the dead one's
//                               behalf: mark_committed_by_supervisor(), with the hash of the record if that
//                               is the dead one's own. A record that another has written over meanwhile gives
//                               none: the frame is counted only.
//   behind the mark:            the mark.
// So at the end of a run each frame that was committed bears a mark with the incarnation that committed it,
// at whatever point its process died, and that has two consequences, neither of which rests on what recovery
// does to the words afterwards:
//   No loss is certified:  a frame without a mark was committed by nobody. It is lost, record or not. (A
//                          recovery that takes the dead one's lease for done leaves just this: a record, and
//                          no mark.)
//   No repeat is certified: a commit that finds a mark is one too many, by whichever incarnation, told or
//   made
//                          itself. (A recovery that throws a COMMITTED frame back leaves a mark that was
//                          told; the second commit finds it.)
// One case is no repeat: an incarnation that was stopped between its commit and its mark, and marks what the
// supervisor has told already.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.hpp"

namespace carousel::telemetry {

struct ledger_record {
    u64 sequence_plus_1 = 0;  ///< 0: no record
    u64 recorded_hash = 0;    ///< what its writer means to commit
    u32 recorded_flags = 0;   ///< ledger_void, or ledger_no_hash, or the tag of the hash's name
    u32 writer = 0;           ///< the incarnation that wrote the record last (ledger_committer)
    // The mark.
    u32 committer = 0;  ///< the incarnation that committed the frame last; 0: nobody
    u32 commits = 0;    ///< how often it was committed; ledger_marked_by_supervisor beside it
    u64 hash = 0;       ///< as the stage gave it (frame::set_hash); 0 for a void frame
    u32 flags = 0;      ///< as recorded_flags
    u32 reserved[5] = {};
};
static_assert(4096 % sizeof(ledger_record) == 0, "no record crosses a page");
inline constexpr u32 ledger_void = 1;
inline constexpr u32 ledger_no_hash = 2;  ///< counted only: the stage gives no hash
/// in `commits`: the supervisor made the mark, for one that died before it could
inline constexpr u32 ledger_marked_by_supervisor = 0x8000'0000U;

/// A hash as a stage gives it. Without a name it is the stage's own, of which nothing but the stage knows the
/// definition.
inline constexpr std::string_view own_hash_name = "own";
struct frame_hash {
    std::optional<u64> value;
    std::string_view name = own_hash_name;  ///< one line of at most 100 bytes
    // NOLINT: a number is a hash of the stage's own
    frame_hash(u64 hash, std::string_view of = own_hash_name) : value(hash), name(of) {}
    frame_hash(std::nullopt_t /*none*/) {}  // NOLINT: the frame is counted only
};
/// 30 bits above the two flags, never 0.
[[nodiscard]] u32 ledger_tag(std::string_view name) noexcept;
[[nodiscard]] constexpr u32 tag_of(u32 flags) noexcept { return flags & ~(ledger_void | ledger_no_hash); }

/// One process on one seat: its epoch (24 bits, from 1) and the seat.
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
/// Where the names of a ledger's hashes stand.
[[nodiscard]] std::string ledger_names_path(const std::string& ledger);

class ledger_writer {
public:
    /// Opens or creates the file. Throws output_error: what, where, what to do.
    explicit ledger_writer(std::string path);
    ~ledger_writer();
    ledger_writer(const ledger_writer&) = delete;
    ledger_writer& operator=(const ledger_writer&) = delete;

    /// Writes the record of one frame; call it before the commit. Leaves the mark of an earlier delivery
    /// alone. Throws output_error when the record can't be written (disk full).
    void record(u64 ring_sequence, const frame_hash& hash, bool is_tombstone, u32 committer);
    /// The frame's commit by this incarnation has succeeded; call it before anything else is done about the
    /// frame, with what record() was given. Throws output_error.
    void mark_committed(u64 ring_sequence, const frame_hash& hash, bool is_tombstone, u32 committer);
    /// The supervisor has found the job word of the dead `committer` COMMITTED. May be told again. False:
    /// there is no record of the frame.
    bool mark_committed_by_supervisor(u64 ring_sequence, u32 committer);

private:
    [[nodiscard]] ledger_record read(u64 ring_sequence) const;
    void write(const void* bytes, u64 count, u64 offset) const;
    void write_mark(u64 ring_sequence, ledger_record r) const;
    void name_hashes(std::string_view name);

    std::string path_;
    int fd_ = -1;
    std::string named_;  ///< the name that is known to stand in the file of names
};

struct ledger_summary {
    u64 records = 0;               ///< frames of the range that have a record and have not passed the sink by
    u64 lost = 0;                  ///< frames of the range that the sink has a claim on and has not committed
    u64 passed = 0;                ///< frames of the range that passed the sink by (frame_claims.hpp)
    u64 repeated = 0;              ///< commits beyond each frame's first
    u64 tombstones = 0;            ///< frames that were given up upstream
    u64 unmarked = 0;              ///< of the lost: recorded, but not committed
    u64 marked_by_supervisor = 0;  ///< marks that the supervisor made for the dead
    u64 without_hash = 0;          ///< frames that were counted only
    u64 folded = 0;                ///< of the range, frames whose records are folded away
    u64 image_hash = 0;  ///< XXH3_64bits over the range's hashes (u64, little-endian) by sequence; 0 for a
                         ///< void or lost frame
    std::vector<u64> tombstone_sequences = {};  ///< the newest thousand
    /// of the range's hashes, as they come, the first few: more than one make no image_hash
    std::vector<u32> hash_tags = {};
    std::vector<std::string> hash_names = {};  ///< of those tags; filled in by ledger_reader
};

class ledger_reader {
public:
    /// Nothing when there is no such file (the sink has not begun). Throws output_error when it can't be
    /// opened.
    [[nodiscard]] static std::optional<ledger_reader> open(const std::string& path);
    ~ledger_reader();
    ledger_reader(ledger_reader&& other) noexcept;
    ledger_reader& operator=(ledger_reader&&) = delete;

    /// The records of [first, first + count); those beyond the file's end, or folded away, are empty. Throws
    /// output_error.
    [[nodiscard]] std::vector<ledger_record> read(u64 first, u64 count) const;
    /// Frames that the file has room for: one more than the highest sequence recorded.
    [[nodiscard]] u64 size() const;
    /// The lowest sequence from `from` on that the sink has a claim on (frame_claims.hpp) and that has no
    /// mark: no commit of it is known, so it has to be delivered (again). no_frame: all claimed frames have a
    /// mark, and the claim is suspended. Of the files alone, whatever the control block says. Throws
    /// output_error.
    [[nodiscard]] u64 first_undelivered(u64 from) const;
    /// Of the frames [0, end), those that are folded away included. Throws output_error, also for hashes
    /// without a name, as builds before this one have written them: nobody can tell what they may be compared
    /// with.
    [[nodiscard]] ledger_summary summarize(u64 end) const;

private:
    ledger_reader(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
    std::string path_;
    int fd_ = -1;
};

/// XXH3_64bits: the hash of a picture's bytes.
[[nodiscard]] u64 hash_bytes(std::span<const std::byte> bytes) noexcept;

}  // namespace carousel::telemetry
