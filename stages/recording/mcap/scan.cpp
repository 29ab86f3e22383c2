#include "stages/recording/mcap/scan.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/checked.hpp"
#include "core/whole_io.hpp"
#include "stages/compression/compression.hpp"

namespace carousel::stages::mcap {
namespace {

constexpr u64 piece_bytes = u64{1} << 20U;
constexpr u64 most_small = u64{64} << 20U;  ///< of a record that is no chunk: more is no recording
constexpr u64 chunk_head_bytes = 8 + 8 + 8 + 4 + 4 + 8;
constexpr u64 most_records = u64{1} << 36U;  ///< bytes of one unit

u64 size_of(int fd) {
    struct stat info {};
    return ::fstat(fd, &info) == 0 ? static_cast<u64>(info.st_size) : 0;
}

/// False: the file ends before.
bool read_at(int fd, u64 at, std::span<std::byte> to) {
    const ssize_t n = read_whole_at(fd, to.data(), to.size(), at);
    if (n < 0) throw format_error(fmt::format("reading it: {}", errno_text(errno)));
    return static_cast<std::size_t>(n) == to.size();
}

struct head {
    opcode code{};
    u64 length = 0;
};

/// Heads and small records from a position on, through a window of the file.
class record_stream {
public:
    record_stream(int fd, u64 at) : fd_(fd), size_(size_of(fd)), at_(at) {}
    /// False: no whole head, or the record that it begins is not whole.
    bool next(head& h) {
        std::byte raw[head_bytes];
        if (at_ + head_bytes > size_ || !take(at_, raw)) return false;
        byte_reader r(raw);
        h.code = static_cast<opcode>(r.number<u8>());
        h.length = r.number<u64>();
        return h.length <= size_ - at_ - head_bytes;
    }
    [[nodiscard]] std::span<const std::byte> content(const head& h, u64 bytes) {
        if (bytes > h.length || bytes > most_small)
            throw format_error(fmt::format("a record of {} bytes at {}", h.length, at_));
        content_.resize(static_cast<std::size_t>(bytes));
        if (!take(at_ + head_bytes, content_)) throw format_error("it became shorter while it was read");
        return content_;
    }
    void skip(const head& h) noexcept { at_ += head_bytes + h.length; }
    [[nodiscard]] u64 at() const noexcept { return at_; }

private:
    bool take(u64 at, std::span<std::byte> to) {
        if (to.size() > piece_bytes) return read_at(fd_, at, to);
        if (at < window_at_ || at + to.size() > window_at_ + window_.size()) {
            window_at_ = at;
            window_.resize(static_cast<std::size_t>(std::min(wish_, size_ - at)));
            wish_ = std::min(wish_ * 4, piece_bytes);
            if (at + to.size() > at + window_.size() || !read_at(fd_, at, window_)) return false;
        }
        std::copy_n(window_.begin() + static_cast<std::ptrdiff_t>(at - window_at_), to.size(), to.begin());
        return true;
    }
    int fd_;
    u64 size_, at_, window_at_ = 0, wish_ = 4096;
    buffer window_, content_;
};

u64 read_front(record_stream& s, contents& c) {
    for (head h; s.next(h); s.skip(h)) {
        switch (h.code) {
            case opcode::header: {
                byte_reader r(s.content(h, h.length));
                (void)r.text();
                c.front.library = r.text();
                break;
            }
            case opcode::metadata:
                c.front.about = read_metadata(s.content(h, h.length));
                break;
            case opcode::schema:
                c.front.schemas.push_back(read_schema(s.content(h, h.length)));
                break;
            case opcode::channel:
                c.front.channels.push_back(read_channel(s.content(h, h.length)));
                break;
            default:
                return s.at();
        }
    }
    return s.at();
}

chunk_entry read_chunk_head(record_stream& s, const head& h) {
    byte_reader r(s.content(h, std::min(h.length, chunk_head_bytes + 32)));
    chunk_entry c;
    c.start = s.at();
    c.length = head_bytes + h.length;
    c.first_ns = r.number<u64>();
    c.last_ns = r.number<u64>();
    c.uncompressed = r.number<u64>();
    (void)r.number<u32>();
    c.compression = r.text();
    c.compressed = r.number<u64>();
    return c;
}

/// Unit by unit, up to the first one that is not whole.
void walk(record_stream& s, contents& c) {
    for (head h; s.next(h) && h.code == opcode::chunk;) {
        chunk_entry unit = read_chunk_head(s, h);
        s.skip(h);
        for (std::size_t k = 0; k < c.front.channels.size(); ++k) {
            if (!s.next(h) || h.code != opcode::message_index || h.length < empty_message_index_bytes) return;
            if (h.length > empty_message_index_bytes) {
                const u16 channel = byte_reader(s.content(h, sizeof(u16))).number<u16>();
                if (channel == 0 || channel > most_channels) return;
                unit.channels |= bit_of(channel);
            }
            unit.index_length += head_bytes + h.length;
            s.skip(h);
        }
        c.chunks.push_back(std::move(unit));
    }
}

/// By the summary. False: there is none, or none that can be right: its units are in the file's order,
/// between the preamble and the summary.
bool read_summary(int fd, contents& c) {
    const u64 size = size_of(fd), tail = footer_bytes + sizeof magic;
    std::byte raw[footer_bytes + sizeof magic];
    if (size < c.front_bytes + tail || !read_at(fd, size - tail, raw)) return false;
    if (std::memcmp(raw + footer_bytes, magic, sizeof magic) != 0) return false;
    byte_reader r({raw, static_cast<std::size_t>(footer_bytes)});
    if (static_cast<opcode>(r.number<u8>()) != opcode::footer || r.number<u64>() != 20) return false;
    const u64 start = r.number<u64>();
    if (start < c.front_bytes || start > size - tail) return false;
    record_stream s(fd, start);
    for (head h; s.at() < size - tail && s.next(h); s.skip(h)) {
        if (h.code != opcode::chunk_index) continue;
        chunk_entry unit = read_chunk_index(s.content(h, h.length));
        if (unit.start < c.end() || !is_within(unit.start, add_sat(unit.length, unit.index_length), start))
            return false;
        c.chunks.push_back(std::move(unit));
    }
    return true;
}

}  // namespace

contents read_front(int fd) {
    unsigned char raw[sizeof magic];
    if (!read_at(fd, 0, std::as_writable_bytes(std::span(raw))) || std::memcmp(raw, magic, sizeof magic) != 0)
        throw format_error("it is no MCAP file");
    contents c;
    record_stream s(fd, sizeof magic);
    c.front_bytes = read_front(s, c);
    return c;
}

contents scan(int fd) {
    contents c = read_front(fd);
    c.ended = read_summary(fd, c);
    if (c.ended) return c;
    c.chunks.clear();
    record_stream s(fd, c.front_bytes);
    walk(s, c);
    return c;
}

void read_chunk(int fd, const chunk_entry& c, buffer& compressed, buffer& records) {
    const u64 head_of_chunk = head_bytes + chunk_head_bytes + c.compression.size();
    // These numbers come from the file, and memory is allocated by them: none exceeds what the file contains.
    if (c.length != add_sat(head_of_chunk, c.compressed) || !is_within(c.start, c.length, size_of(fd)))
        throw format_error(fmt::format("the chunk at {} and its index don't fit each other", c.start));
    if (c.uncompressed > std::min(most_records, most_uncompressed(c.compression, c.compressed)))
        throw format_error(
            fmt::format("the chunk at {} can't contain {} bytes: it has {}, compression \"{}\"", c.start,
                        c.uncompressed, c.compressed, c.compression));
    compressed.resize(static_cast<std::size_t>(c.length));
    if (!read_at(fd, c.start, compressed)) throw format_error("it ends before its last chunk");
    byte_reader r({compressed.data() + head_bytes + 3 * sizeof(u64), sizeof(u32)});
    const u32 crc = r.number<u32>();
    records.resize(static_cast<std::size_t>(c.uncompressed));
    try {
        decompress(c.compression, std::span(compressed).subspan(static_cast<std::size_t>(head_of_chunk)),
                   records);
    } catch (const compression_error& e) {
        throw format_error(fmt::format("the chunk at {}: {}", c.start, e.what()));
    }
    if (crc != 0 && crc != crc_of(records))
        throw format_error(fmt::format("the chunk at {} has another check sum than it says", c.start));
}

}  // namespace carousel::stages::mcap
