#pragma once
// The file of an encoded stream. It continues to exist when its writers die.

#include <optional>
#include <span>
#include <string>

#include "core/output_file.hpp"
#include "core/types.hpp"
#include "shm/fd_socket.hpp"
#include "stages/encode/units.hpp"

namespace carousel::stages {

/// A place for encoded frames that determines which frames it has.
class encoded_sink {
public:
    virtual ~encoded_sink() = default;
    /// True if the sink has that frame or a later one; frames arrive in order.
    [[nodiscard]] virtual bool contains(u64 frame_number) const noexcept = 0;
    /// Throws output_error (disk full); then the same frame may be appended again.
    virtual void append(u64 frame_number, const encoded_frame& f) = 0;
    /// True for a FIFO or a device, from which nothing can be read back.
    [[nodiscard]] virtual bool is_stream() const noexcept { return false; }
    /// The end of the stream.
    virtual void close() {}
};

// The first incarnation of a stage creates the file; each later one continues after the last complete unit,
// so that a killed stage leaves one playable file that has every frame once:
//   killed in the middle of a unit:      the successor removes the incomplete unit, and the frame is
//   delivered
//                                        again
//   killed between unit and commit:      the frame is delivered again, but not written again, because the
//                                        file has it
//   kill -9 of all processes:            complete units can be played (players skip the cut one)
// If the path is a symbolic link, its target is written, and the link is kept. If the path is a FIFO or a
// device (for a player that reads during the run), each unit is written as soon as it is made. If a stage was
// killed while it wrote a unit, that unit stays incomplete in the stream, and the successor writes the whole
// frame after it. If the predecessor has not ended yet, for example because a GPU takes time to release it,
// the successor waits for the file's lock, which is released when the predecessor ends. If a successor's
// heading differs (the program or ffmpeg's libraries were replaced meanwhile), its frames go to
// NAME.part2.mp4 and so on. A small file in the run's runtime directory, created with each part, records
// which process is the first one and which part is being written.

class encoded_file final : public encoded_sink {
public:
    /// `note`: path of the small file. `wait`: for the reader of a FIFO or a device. Throws output_error with
    /// the failure, the path and a remedy; config_error for a file whose container cannot be continued.
    encoded_file(std::string path, std::string note, std::span<const u8> heading,
                 container format = container::mp4, receiver_wait wait = {});

    [[nodiscard]] bool contains(u64 frame_number) const noexcept override {
        return last_ && frame_number <= *last_;
    }
    void append(u64 frame_number, std::span<const u8> unit);
    void append(u64 frame_number, const encoded_frame& f) override { append(frame_number, f.bytes); }
    [[nodiscard]] bool is_stream() const noexcept override { return is_stream_; }
    /// The part being written.
    [[nodiscard]] const std::string& path() const noexcept { return part_; }

private:
    [[nodiscard]] u32 noted_part() const;
    void begin_part(u32 part, std::span<const u8> heading);
    [[nodiscard]] bool continue_part(u32 part, std::span<const u8> heading);
    void open_locked(u32 part, int flags);
    void begin_stream(const output_target& to, std::span<const u8> heading);
    void write_at_end(std::span<const u8> bytes);
    void write_to_reader(std::span<const u8> bytes);
    [[noreturn]] void fail(const char* what, int error_number) const;

    std::string path_, note_, part_;
    container format_;
    receiver_wait wait_;
    shm::unique_fd file_;
    bool is_stream_ = false;  ///< a FIFO or a device
    u64 bytes_ = 0;
    std::optional<u64> last_;
};

/// The first line of a note; empty if there is no note: the output begins. Throws output_error if the note
/// cannot be read.
[[nodiscard]] std::optional<std::string> read_note(const std::string& note);
/// Replaces the note. Does nothing if the path is empty. Throws output_error.
void write_note(const std::string& note, const std::string& line);
/// Throws output_error: the note exists but has no meaning, so nothing may be removed from the output.
[[noreturn]] void throw_damaged_note(const std::string& note, const std::string& output);

/// Waits up to 10 s for the lock of an open file or folder, which a predecessor has until it ends. Returns 0
/// or the error number; EWOULDBLOCK after 10 s.
[[nodiscard]] int lock_exclusively(int fd) noexcept;

}  // namespace carousel::stages
