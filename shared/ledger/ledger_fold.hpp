#pragma once
// A run may last for months, and a ledger grows by 64 bytes per frame. Therefore the records of old delivered
// frames are folded into running counts and a running hash, and the space of these records is returned to the
// file system. The newest records stay.
//
// Threading: fold_ledger() from one process at a time (the run's supervisor); the readers from any process.
//
// `<ledger>.folded` holds the account of the frames [0, end) and is replaced as a whole (temporary file,
// rename). Steps, and what a crash leaves:
//   1. read [old end, new end)          the old account.
//   2. write the account to a new file  the old account, and a file that the next fold overwrites.
//   3. rename                           the new account; the records below its end still exist, but no
//                                       process reads them.
//   4. punch the hole                   done. The next fold punches from 0, which completes a fold that
//                                       stopped after step 3.
// The order matters: a hole that is punched while the old account is valid would lose the frames between both
// accounts. Nothing is flushed to the disk (fsync): the steps are ordered for every process of the machine
// and for a kill at any step, but not for a power loss. A power loss may leave the account empty or truncated
// (ext4 and xfs flush it at the rename by default), or the old account with the hole already punched. In the
// first case ledger_account::load() rejects the file and names it; in the second case the frames between the
// two accounts count as lost. Delivered output is not affected: a sink's own files are independent. A reader
// that runs concurrently with a fold reads the account before and after the records, and starts again if the
// account has changed. Only frames that have a mark, or on which the sink has no claim (ledger.hpp), are
// folded: a folded frame can no longer be lost. A folded frame cannot be repeated either, as long as the
// number of frames that are kept exceeds the window. (A second commit of a folded frame would not be
// detected.) If the file system cannot punch holes, the file keeps its size, and the account is the same.

#include <memory>
#include <string>

#include "ledger/ledger.hpp"

namespace carousel::telemetry {

/// The account of a sink's frames [0, end()), extended record by record.
class ledger_account {
public:
    ledger_account();
    ~ledger_account();
    ledger_account(ledger_account&&) noexcept;
    ledger_account& operator=(ledger_account&&) noexcept;

    /// Adds the next frame, whose number is end(): its record, or an empty record if it has none. `claimed`:
    /// the sink has a claim on the frame.
    void add(const ledger_record& r, bool claimed);
    [[nodiscard]] u64 end() const noexcept { return end_; }
    [[nodiscard]] ledger_summary summary() const;

    /// Returns an empty account that begins at frame `first`.
    [[nodiscard]] static ledger_account beginning_at(u64 first);
    /// Returns the account in the file, or an empty one if there is no such file. Throws output_error if
    /// another build wrote the file or it is damaged.
    [[nodiscard]] static ledger_account load(const std::string& path);
    /// Writes the file atomically. Throws output_error.
    void save(const std::string& path) const;

private:
    struct hash_state;
    u64 first_ = 0, end_ = 0;
    ledger_summary sum_;
    std::unique_ptr<hash_state> hash_;
};

/// Path of the file with the account of the folded frames.
[[nodiscard]] std::string folded_path(const std::string& ledger);
/// Throws output_error with the ledger's path if `sum` contains hashes without a name.
void refuse_nameless(const ledger_summary& sum, const std::string& ledger);
/// The first frame whose record is kept. Throws output_error.
[[nodiscard]] u64 folded_end(const std::string& ledger);

/// Creates a ledger of frames from `first` on: earlier frames count as delivered, and have no hash in this
/// ledger.
void begin_ledger(const std::string& ledger, u64 first);

/// Records are folded in multiples of this number, so that their space is whole pages of the file system.
inline constexpr u64 fold_step = 4096;
/// Folds the frames that are below `below` (rounded down to fold_step) and precede the first frame that is
/// not settled. The number of frames per call is limited, because the supervisor is blocked during the call.
/// Returns the first frame that is kept. Throws output_error; the ledger is then unchanged.
u64 fold_ledger(const std::string& ledger, u64 below);

/// Copies the kept records without the holes, the account of the folded frames, the claims and the names of
/// the hashes. Throws output_error.
void copy_ledger(const std::string& from, const std::string& to);

}  // namespace carousel::telemetry
