#pragma once
// Appends units to a recording. The process that holds the file's lock (flock) owns the file: a successor
// waits for the lock until its predecessor has ended, so no write of a dead process arrives late. What a
// crash leaves: mcap/record.hpp.

#include <string>
#include <vector>

#include "shm/fd_socket.hpp"
#include "stages/recording/mcap/scan.hpp"

namespace carousel::stages::mcap {

class writer {
public:
    /// Creates the file, or continues the file of an earlier incarnation and removes the data after its last
    /// complete unit. Waits up to wait_s seconds for the file's lock. `front` must be the same in each
    /// incarnation: a file that begins with another preamble is refused. Throws output_error,
    /// disk_full_error.
    writer(std::string path, const preamble& front, std::string compression, double wait_s);

    /// Appends one unit: a message of each channel, or of some channels, in the channels' order. Throws
    /// disk_full_error or output_error; the file is then unchanged.
    void append(std::span<const message> messages);
    /// Writes the end of the file. Throws like append(); the units in the file stay valid even if it throws.
    void finish();

    [[nodiscard]] u64 units() const noexcept { return chunks_.size(); }
    /// Returns the records of the last unit that has a message of that channel; empty: there is none. A unit
    /// with a wrong checksum is cut off at the end of the file, and skipped elsewhere.
    [[nodiscard]] const buffer& last_records(u16 channel);
    [[nodiscard]] u64 bytes() const noexcept { return end_; }
    [[nodiscard]] u64 cut() const noexcept {
        return cut_;
    }  ///< number of bytes at the end of the file that belonged to no complete unit
    /// Describes the frames that are missing between the units of the file because bytes are damaged. The
    /// damaged bytes stay in the file, outside of the summary.
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
