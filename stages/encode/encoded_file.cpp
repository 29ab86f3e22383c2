#include "stages/encode/encoded_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>

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

encoded_file::encoded_file(std::string path, std::string note, std::span<const u8> heading, container format)
    : path_(std::move(path)), note_(std::move(note)), format_(format) {
    part_ = path_;
    const std::optional<output_target> to = find_output(path_);
    if (!to) fail("opening", errno);
    path_ = to->path;
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

u32 encoded_file::noted_part() const {
    std::ifstream in(note_);
    u32 part = 0;
    return in >> part && part <= most_parts ? part : 0;
}

// The note is replaced by a rename. If the process crashes before the rename, the older note or no note is
// left, and the next incarnation begins the part again.
void encoded_file::note_part(u32 part) const {
    if (note_.empty()) return;
    const std::string temporary = note_ + ".tmp";
    std::ofstream(temporary, std::ios::trunc) << part << "\n";
    if (std::rename(temporary.c_str(), note_.c_str()) != 0)
        throw output_error(fmt::format("writing {}: {}", note_, errno_text(errno)));
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
    note_part(part);
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
    note_part(1);
}

// If the output is a file, the next attempt overwrites a partial unit. If this process makes no further
// attempt, the next incarnation removes the partial unit.
void encoded_file::write_at_end(std::span<const u8> bytes) {
    if (is_stream_) {
        if (const int failed = write_output(file_.get(), std::as_bytes(bytes)); failed != 0)
            fail("writing", failed);
    } else if (!write_whole_at(file_.get(), bytes.data(), bytes.size(), bytes_)) {
        fail("writing", errno);
    }
    bytes_ += bytes.size();
}

}  // namespace carousel::stages
