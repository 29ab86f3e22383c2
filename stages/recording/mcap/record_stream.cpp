#include "stages/recording/mcap/record_stream.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "core/io.hpp"
#include "core/types.hpp"

namespace carousel::stages::mcap {
namespace {

constexpr u64 largest_window = u64{1} << 20U;
constexpr u64 most_small = u64{64} << 20U;  ///< limit of a record that is not a chunk

}  // namespace

u64 size_of(int fd) {
    struct stat info {};
    return ::fstat(fd, &info) == 0 ? static_cast<u64>(info.st_size) : 0;
}

bool read_at(int fd, u64 at, std::span<std::byte> to) {
    const ssize_t n = read_whole_at(fd, to.data(), to.size(), at);
    if (n < 0) throw format_error(fmt::format("reading it: {}", errno_text(errno)));
    return static_cast<std::size_t>(n) == to.size();
}

head read_head(std::span<const std::byte> raw) {
    byte_reader r(raw);
    head h;
    h.code = static_cast<opcode>(r.number<u8>());
    h.length = r.number<u64>();
    return h;
}

bool record_stream::next(head& h) {
    std::byte raw[head_bytes];
    if (!is_within(at_, head_bytes, size_) || !take(at_, raw)) return false;
    h = read_head(raw);
    return h.length <= size_ - at_ - head_bytes;
}

std::span<const std::byte> record_stream::content(const head& h, u64 bytes) {
    if (bytes > h.length || bytes > most_small)
        throw format_error(fmt::format("a record of {} bytes at {}", h.length, at_));
    content_.resize(static_cast<std::size_t>(bytes));
    if (!take(at_ + head_bytes, content_)) throw format_error("it was truncated while it was read");
    return content_;
}

bool record_stream::take(u64 at, std::span<std::byte> to) {
    if (to.size() > largest_window) return read_at(fd_, at, to);
    if (at < window_at_ || at + to.size() > window_at_ + window_.size()) {
        window_at_ = at;
        window_.resize(static_cast<std::size_t>(std::min(next_window_, size_ - at)));
        next_window_ = std::min(next_window_ * 4, largest_window);
        if (to.size() > window_.size() || !read_at(fd_, at, window_)) return false;
    }
    std::copy_n(window_.begin() + static_cast<std::ptrdiff_t>(at - window_at_), to.size(), to.begin());
    return true;
}

}  // namespace carousel::stages::mcap
