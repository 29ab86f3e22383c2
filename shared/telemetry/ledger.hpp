#pragma once
// A sink's ledger: one record a frame, from which the supervisor computes what was lost, what was repeated, and one hash over
// all pictures. It is kept apart from the protocol's own words on purpose: the protocol can't be its own witness.
//
// Who may call: the writer belongs to a sink's process (its completion thread); the reader to any process, also during the run.
// Several writers of one file (instances, a successor beside its dying predecessor) don't disturb each other: each record has
// its own place and is written whole by one pwrite(2).
//
// Layout of `<run directory>/ledger-<stage>.bin`, little-endian: the record of sequence n at byte 32 n, see ledger_record.
// A hole reads as zeros, hence the field that is sequence + 1.
//
// Order: record() before the frame's commit, mark_committed() after the commit has succeeded. What a crash leaves:
//   before record():            nothing; the frame is delivered again.
//   between record and commit:  a record without the mark; the frame is delivered again and its record rewritten (no repeat).
//   between commit and mark:    a record without the mark of a frame that is done; it counts as delivered once.
// A frame whose commit succeeds although its record bears the mark was delivered twice: that, and only that, is a repeat. A
// dying predecessor may rewrite the record of its successor (same hash), but it never commits, so it never counts.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace carousel::telemetry {

struct ledger_record {
    u64 sequence_plus_1 = 0;  ///< 0: no record
    u64 hash = 0;             ///< XXH3_64bits of the picture's bytes; 0 for a void frame
    u32 flags = 0;            ///< ledger_void | ledger_committed
    u32 times = 0;            ///< commits beyond the first
    u64 epoch = 0;            ///< incarnation of the seat that wrote the record last
};
static_assert(sizeof(ledger_record) == 32);
inline constexpr u32 ledger_void = 1;
inline constexpr u32 ledger_committed = 2;

/// Path of a stage's ledger.
[[nodiscard]] std::string ledger_path(const std::string& run_directory, const std::string& stage);

class ledger_writer {
public:
    /// Opens or creates the file. Throws output_error: what, where, what to do.
    explicit ledger_writer(std::string path);
    ~ledger_writer();
    ledger_writer(const ledger_writer&) = delete;
    ledger_writer& operator=(const ledger_writer&) = delete;

    /// Writes the record of one frame; call it before the commit. Keeps the mark and the count of an earlier delivery.
    /// Throws output_error when the record can't be written (disk full).
    void record(u64 sequence, u64 hash, bool is_void, u64 epoch);
    /// The frame's commit has succeeded. Throws output_error.
    void mark_committed(u64 sequence);

private:
    [[nodiscard]] ledger_record read(u64 sequence) const;
    void write(u64 sequence, const ledger_record& r) const;

    std::string path_;
    int fd_ = -1;
};

struct ledger_summary {
    u64 records = 0;     ///< frames of the range that have a record
    u64 lost = 0;        ///< frames of the range that have none
    u64 repeated = 0;    ///< commits beyond each frame's first
    u64 voids = 0;       ///< frames that were given up upstream
    u64 unmarked = 0;    ///< records whose commit was not seen: at most one for each death of the sink, and job in flight
    u64 image_hash = 0;  ///< XXH3_64bits over the range's hashes (u64, little-endian) by sequence; 0 for a void or lost frame
};

class ledger_reader {
public:
    /// Nothing when there is no such file (the sink has not begun). Throws output_error when it can't be opened.
    [[nodiscard]] static std::optional<ledger_reader> open(const std::string& path);
    ~ledger_reader();
    ledger_reader(ledger_reader&& other) noexcept;
    ledger_reader& operator=(ledger_reader&&) = delete;

    /// The records of [first, first + count); those beyond the file's end are empty. Throws output_error.
    [[nodiscard]] std::vector<ledger_record> read(u64 first, u64 count) const;
    /// Frames that the file has room for: one more than the highest sequence recorded.
    [[nodiscard]] u64 size() const;
    /// The lowest sequence from `from` on that bears no mark: no commit of it is known, so it has to be delivered (again). Of the file
    /// alone, whatever the control block says. Throws output_error.
    [[nodiscard]] u64 first_undelivered(u64 from) const;
    /// Of the range [first, end).
    [[nodiscard]] ledger_summary summarize(u64 first, u64 end) const;

private:
    ledger_reader(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
    std::string path_;
    int fd_ = -1;
};

/// XXH3_64bits: the hash of a picture's bytes.
[[nodiscard]] u64 hash_bytes(std::span<const std::byte> bytes) noexcept;

}  // namespace carousel::telemetry
