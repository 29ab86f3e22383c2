#pragma once
// A run may last for months, and a ledger grows by 64 bytes per frame: what is delivered and old is folded
// into running counts and a running hash, and its records' space goes back to the file system. The newest
// records stay.
//
// Who may call: fold_ledger() one process at a time (the run's supervisor); the readers any process.
//
// `<ledger>.folded` holds the account of the frames [0, end) and is replaced whole (temporary file, rename).
// Steps, and what a kill leaves:
//   1. read [old end, new end)      the old account.
//   2. write the account aside      the old account, and a file that the next fold overwrites.
//   3. rename                       the new account; the records below its end are still there, and read by
//                                   nobody.
//   4. punch the hole               done. The next fold punches from 0, so that step 3 left behind is made
//                                   good.
// The order counts: a hole that is punched while the old account counts would lose the records of both.
// Nothing is flushed to the disk (fsync): the steps are ordered for every process of the machine and for a
// kill at any step, not for a loss of power. That may leave the account empty or cut off (ext4 and xfs flush
// it at the rename by default), or the old one with the hole already punched. Then ledger_account::load()
// refuses the file by its name, or the frames between the two accounts count as lost. What was delivered is
// not affected: a sink's own files are its own matter. A reader that meets a fold reads the account before
// and behind the records, and begins anew when it has changed. Only frames that have a mark, or on which the
// sink has no claim (frame_claims.hpp), are folded: a folded frame can't be lost any more. Nor can it be
// repeated, as long as more frames are kept than a window holds; a commit of a frame that is folded already
// would not be seen. Where the file system can't punch holes the file keeps its size; the account is the
// same.

#include <memory>
#include <string>

#include "telemetry/ledger.hpp"

namespace carousel::telemetry {

/// The account of a sink's frames [0, end()), extended record by record.
class ledger_account {
public:
    ledger_account();
    ~ledger_account();
    ledger_account(ledger_account&&) noexcept;
    ledger_account& operator=(ledger_account&&) noexcept;

    /// Of the frame end(): its record, or an empty one. `claimed`: the sink has a claim on it.
    void add(const ledger_record& r, bool claimed);
    [[nodiscard]] u64 end() const noexcept { return end_; }
    [[nodiscard]] ledger_summary summary() const;

    /// Empty, of frames from `first` on.
    [[nodiscard]] static ledger_account beginning_at(u64 first);
    /// An empty account when there is no such file. Throws output_error for one that is not ours or damaged.
    [[nodiscard]] static ledger_account load(const std::string& path);
    /// Whole or not at all. Throws output_error.
    void save(const std::string& path) const;

private:
    struct hash_state;
    u64 first_ = 0, end_ = 0;
    ledger_summary sum_;
    std::unique_ptr<hash_state> hash_;
};

/// Where the folded part's account lies.
[[nodiscard]] std::string folded_path(const std::string& ledger);
/// Throws output_error naming the ledger when it has hashes without a name.
void refuse_nameless(const ledger_summary& sum, const std::string& ledger);
/// First frame whose record is kept. Throws output_error.
[[nodiscard]] u64 folded_end(const std::string& ledger);

/// A new ledger of frames from `first` on: those below count as delivered, and have no hash in it.
void begin_ledger(const std::string& ledger, u64 first);

/// Records are folded by so many at least: so that their space is whole pages of the file system.
inline constexpr u64 fold_step = 4096;
/// Folds the frames below `below` (rounded down to fold_step) as far as all of them are settled, a limited
/// number per call: the supervisor does nothing else meanwhile. Returns the first frame kept. Throws
/// output_error; the ledger is as it was then.
u64 fold_ledger(const std::string& ledger, u64 below);

/// Copies the records that are kept, holes left out, and beside it the account of the rest and the names of
/// the hashes. Throws output_error.
void copy_ledger(const std::string& from, const std::string& to);

}  // namespace carousel::telemetry
