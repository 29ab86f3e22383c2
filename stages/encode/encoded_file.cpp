#include "stages/encode/encoded_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <poll.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/output_file.hpp"

namespace carousel::stages {
namespace {

constexpr u64 lock_patience_ns = 10 * ns_per_s;
constexpr u32 lock_poll_us = 2000, most_parts = 1000;

std::string name_of_part(const std::string& path, u32 part) {
    if (part == 1) return path;
    const std::filesystem::path whole(path);
    return (whole.parent_path() /
            fmt::format("{}.part{}{}", whole.stem().string(), part, whole.extension().string()))
        .string();
}

}  // namespace

int lock_exclusively(int fd) noexcept {
    for (const u64 until = now_ns() + lock_patience_ns; ::flock(fd, LOCK_EX | LOCK_NB) != 0;) {
        if (errno != EWOULDBLOCK && errno != EINTR) return errno;
        if (now_ns() > until) return EWOULDBLOCK;
        ::usleep(lock_poll_us);
    }
    return 0;
}

std::optional<std::string> read_note(const std::string& note) {
    if (note.empty()) return {};
    std::optional<std::string> text = read_file(note);
    if (!text && errno != ENOENT) throw output_error(fmt::format("reading {}: {}", note, errno_text(errno)));
    if (text) text->resize(std::min(text->find('\n'), text->size()));
    return text;
}

// Replaced by a rename. If the process crashes before the rename, the older note or no note is left.
void write_note(const std::string& note, const std::string& line) {
    if (note.empty()) return;
    const std::string text = line + "\n";
    if (const int failed = write_output_file(note, {std::as_bytes(std::span(text))}); failed != 0)
        throw_output_error(note, failed, fmt::format("writing {}: {}", note, output_cause(failed)));
}

void throw_damaged_note(const std::string& note, const std::string& output) {
    throw output_error(
        fmt::format("{} is damaged, so {} is not continued: move the output elsewhere and begin a new run",
                    note, output));
}

encoded_file::encoded_file(std::string path, std::string note, std::span<const u8> heading, container format,
                           receiver_wait wait)
    : path_(std::move(path)), note_(std::move(note)), format_(format), wait_(std::move(wait)) {
    part_ = path_;
    const std::optional<output_target> to = find_output(path_);
    if (!to) fail("opening", errno);
    path_ = to->path;
    if (to->is_file && format_ != container::mp4 && format_ != container::matroska)
        throw config_error(
            fmt::format("{}: {} in a file cannot be continued after a kill; use .mp4 or .mkv, or a FIFO",
                        path_, name_of(format_)));
    const u32 part = noted_part();
    if (!to->is_file)
        begin_stream(*to, part == 0 ? heading : std::span<const u8>());
    else if (part == 0)
        begin_part(1, heading);
    else if (!continue_part(part, heading))
        begin_part(part + 1, heading);
}

void encoded_file::fail(const char* what, int error_number) const {
    throw_output_error(part_, error_number,
                       fmt::format("{} {}: {}", what, part_,
                                   output_cause(error_number, "choose a file that this user may write")));
}

// A note without a number is damaged. To begin again would remove the frames of the predecessors.
u32 encoded_file::noted_part() const {
    const std::optional<std::string> text = read_note(note_);
    if (!text) return 0;
    u32 part = 0;
    const auto [end, failed] = std::from_chars(text->data(), text->data() + text->size(), part);
    if (failed == std::errc() && part > 0 && part <= most_parts) return part;
    throw_damaged_note(note_, path_);
}

void encoded_file::open_locked(u32 part, int flags) {
    part_ = name_of_part(path_, part);
    file_.reset(::open(part_.c_str(), flags | O_RDWR | O_CLOEXEC, 0644));
    if (!file_) fail("opening", errno);
    const int failed = lock_exclusively(file_.get());
    if (failed == EWOULDBLOCK)
        throw output_error(fmt::format("another process writes {}: choose another file", part_));
    if (failed != 0) fail("locking", failed);
}

void encoded_file::begin_part(u32 part, std::span<const u8> heading) {
    if (part > most_parts) throw output_error(fmt::format("{} has more than {} parts", path_, most_parts));
    open_locked(part, O_CREAT);
    if (::ftruncate(file_.get(), 0) != 0) fail("emptying", errno);
    bytes_ = 0;
    write_at_end(heading);
    write_note(note_, std::to_string(part));
}

bool encoded_file::continue_part(u32 part, std::span<const u8> heading) {
    open_locked(part, 0);
    std::vector<u8> theirs(heading.size());
    const ssize_t got = read_whole_at(file_.get(), theirs.data(), theirs.size(), 0);
    if (got < 0) fail("reading", errno);
    const bool same = static_cast<std::size_t>(got) == heading.size() &&
                      std::equal(theirs.begin(), theirs.end(), heading.begin());
    // The heading in the file and the heading of this program may differ in length, so the search for
    // units begins after the heading in the file.
    const unit_contents found =
        read_units(file_.get(), same ? heading.size() : heading_bytes_of(file_.get(), format_), format_);
    last_ = found.last;
    bytes_ = found.bytes;
    if (::ftruncate(file_.get(), static_cast<off_t>(bytes_)) != 0) fail("cutting", errno);
    return same;
}

void encoded_file::append(u64 frame_number, std::span<const u8> unit) {
    write_at_end(unit);
    last_ = frame_number;
}

// The first incarnation writes the heading. What a FIFO or a device has consumed cannot be read again.
void encoded_file::begin_stream(const output_target& to, std::span<const u8> heading) {
    file_.reset(open_output(to));
    if (!file_) fail("opening", errno);
    is_stream_ = true;
    (void)::lseek(file_.get(), 0, SEEK_END);  // a file that a shell has opened for this run's output
    if (heading.empty()) return;
    write_at_end(heading);
    write_note(note_, "1");
}

// A pipe that poll() reports as writable accepts PIPE_BUF bytes at once, so write_output() does not wait.
void encoded_file::write_to_reader(std::span<const u8> bytes) {
    const u64 limit_ns = static_cast<u64>(wait_.timeout_s * static_cast<f64>(ns_per_s));
    while (!bytes.empty()) {
        const auto piece = bytes.first(std::min<std::size_t>(bytes.size(), PIPE_BUF));
        for (const u64 began = now_ns();
             events_of(file_.get(), POLLOUT, now_ns() + receiver_wait::slice_ns) == 0;) {
            if (now_ns() - began > limit_ns)
                throw output_error(
                    fmt::format("writing {}: its reader has read nothing for {} s (key timeout_s)", part_,
                                wait_.timeout_s));
            if (wait_.on_wait) wait_.on_wait();
        }
        if (const int failed = write_output(file_.get(), std::as_bytes(piece)); failed != 0)
            fail("writing", failed);
        bytes = bytes.subspan(piece.size());
    }
}

// If the output is a file, the next attempt overwrites a partial unit. If this process makes no further
// attempt, the next incarnation removes the partial unit.
void encoded_file::write_at_end(std::span<const u8> bytes) {
    if (is_stream_) {
        write_to_reader(bytes);
    } else if (!write_whole_at(file_.get(), bytes.data(), bytes.size(), bytes_)) {
        fail("writing", errno);
    }
    bytes_ += bytes.size();
}

}  // namespace carousel::stages
