#pragma once
// The file of a film that outlives its writers. The first life of a display makes it anew; each later one
// goes on behind the last whole fragment, so that a killed display leaves one playable file that holds every
// frame once:
//   killed in the middle of a fragment:         its successor cuts the rest off, and the frame is delivered
//                                               again;
//   between the fragment and the commit:        the frame is delivered again, the file has it: it is not
//                                               written again;
//   after a kill -9 of everybody:               all whole fragments can be played (players skip the cut one).
// A symbolic link's target is written, and the link stays. Into a FIFO or a device (a player that reads while
// the run works) the fragments go as they are made: the fragment at which a display was killed is cut off
// there, and its frame follows once more. A predecessor that still runs (a GPU may take its time to let go)
// is waited for: its lock on the file ends with it. Where a successor's heading differs (the program or
// ffmpeg's libraries were replaced meanwhile), its frames go to NAME.part2.mp4 and so on. Which process is
// the first, and which part is written, is kept in a small file in the run's runtime directory, made when the
// part is.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/output_file.hpp"
#include "core/types.hpp"
#include "shm/fd_socket.hpp"

namespace carousel::stages {

class film_file {
public:
    /// `note`: path of the small file. Throws output_error: what, where, what to do.
    film_file(std::string path, std::string note, std::span<const u8> heading);

    /// The film has that frame, or a later one: frames come in order.
    [[nodiscard]] bool contains(u64 frame_number) const noexcept { return last_ && frame_number <= *last_; }
    /// Throws output_error (disk full).
    void append(u64 frame_number, std::span<const u8> fragment);
    /// The part that is being written.
    [[nodiscard]] const std::string& path() const noexcept { return part_; }

private:
    [[nodiscard]] u32 noted_part() const;
    void note_part(u32 part) const;
    void begin_part(u32 part, std::span<const u8> heading);
    [[nodiscard]] bool continue_part(u32 part, std::span<const u8> heading);
    void open_locked(u32 part, int flags);
    void begin_stream(const output_target& to, std::span<const u8> heading);
    void write_at_end(std::span<const u8> bytes);
    [[noreturn]] void fail(const char* what, int error_number) const;

    std::string path_, note_, part_;
    shm::unique_fd file_;
    bool is_stream_ = false;  ///< a FIFO or a device
    u64 bytes_ = 0;
    std::optional<u64> last_;
};

}  // namespace carousel::stages
