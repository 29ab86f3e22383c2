#pragma once
// Appends units to a recording. The file belongs to whoever holds its lock (flock): a successor waits for it
// until its predecessor is gone, so no write of a dead process comes late. What a death leaves:
// mcap/record.hpp.

#include <string>
#include <vector>

#include "shm/fd_socket.hpp"
#include "stages/recording/mcap/scan.hpp"

namespace carousel::stages::mcap {

class writer {
public:
    /// Makes the file, or goes on with one of an earlier life: what is behind its last whole unit is cut off.
    /// Waits up to wait_s for its lock. `front` is the same in each life: a file that begins otherwise is
    /// refused. Throws output_error, disk_full_error.
    writer(std::string path, const preamble& front, std::string compression, double wait_s);

    /// One unit: a message of each channel, or of some, in the channels' order. Throws disk_full_error,
    /// output_error; the file is as before then.
    void append(std::span<const message> messages);
    /// The end of the file. Throws as append() does; the units stay whole.
    void finish();

    [[nodiscard]] u64 units() const noexcept { return chunks_.size(); }
    /// The records of the last unit that has a message of that channel; empty: there is none. One whose check
    /// sum is wrong is cut off at the end of the file, and passed over in front of others.
    [[nodiscard]] const buffer& last_records(u16 channel);
    [[nodiscard]] u64 bytes() const noexcept { return end_; }
    [[nodiscard]] u64 cut() const noexcept { return cut_; }  ///< bytes that were no whole unit
    /// Why frames are missing between the units of the file: damage. Their bytes stay, outside of the
    /// summary.
    [[nodiscard]] const std::vector<std::string>& damage() const noexcept { return damage_; }

private:
    void take_lock(double wait_s);
    void continue_file(const buffer& front);
    void write_all(std::span<const buffer* const> parts);
    void summary(buffer& to) const;

    std::string path_, compression_;
    preamble front_;
    shm::unique_fd fd_;
    std::vector<chunk_entry> chunks_;
    std::vector<std::string> damage_;
    u64 end_ = 0, cut_ = 0;
    buffer records_, compressed_, head_, indexes_;
};

}  // namespace carousel::stages::mcap
