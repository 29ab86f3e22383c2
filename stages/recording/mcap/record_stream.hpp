#pragma once
// Reads the records of a file one after the other, by their heads, without keeping more than a window of the
// file in memory.

#include <span>

#include "stages/recording/mcap/record.hpp"

namespace carousel::stages::mcap {

/// Bytes of the file; 0 if it can't be inspected.
[[nodiscard]] u64 size_of(int fd);
/// Fills `to` from position `at`. Returns false if the file ends before. Throws format_error if the read
/// failed.
[[nodiscard]] bool read_at(int fd, u64 at, std::span<std::byte> to);

/// The opcode and the length that precede the content of a record.
struct head {
    opcode code{};
    u64 length = 0;
};

/// The head that `raw` (at least head_bytes) begins with.
[[nodiscard]] head read_head(std::span<const std::byte> raw);

class record_stream {
public:
    record_stream(int fd, u64 at) : fd_(fd), size_(size_of(fd)), at_(at) {}
    /// Returns false if the file ends before the end of the head or of the record.
    [[nodiscard]] bool next(head& h);
    /// The first `bytes` bytes of the content of the current record, which begins at at(). Valid until the
    /// next call. Throws format_error.
    [[nodiscard]] std::span<const std::byte> content(const head& h, u64 bytes);
    void skip(const head& h) noexcept { at_ += head_bytes + h.length; }
    [[nodiscard]] u64 at() const noexcept { return at_; }

private:
    bool take(u64 at, std::span<std::byte> to);

    int fd_;
    u64 size_, at_, window_at_ = 0, next_window_ = 4096;
    buffer window_, content_;
};

}  // namespace carousel::stages::mcap
