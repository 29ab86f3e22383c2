#include "stages/recording/mcap/scan.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

#include "core/io.hpp"
#include "core/types.hpp"
#include "stages/compression/compression.hpp"

namespace carousel::stages::mcap {
namespace {

constexpr u64 largest_window = u64{1} << 20U;
constexpr u64 most_small = u64{64} << 20U;  ///< size limit of each record except chunks

constexpr u64 most_records = u64{1} << 36U;  ///< bytes of one unit
constexpr u64 read_at_once = u64{1} << 20U;

/// Returns where the preamble ends. The preamble ends before the first record that can't belong to it. That
/// record may have any opcode, because the opcode of a chunk may be damaged. The end of a record is found
/// from its content and not from its length, because the length may also be damaged.
u64 read_front(record_stream& s, contents& c) {
    for (head h; s.next(h); s.skip(h)) try {
            if (h.code == opcode::chunk || h.code == opcode::data_end) return s.at();
            byte_reader r(s.content(h, h.length));
            switch (h.code) {
                case opcode::header:
                    (void)r.text();
                    c.front.library = r.text();
                    break;
                case opcode::metadata:
                    c.front.about = read_metadata(r);
                    break;
                case opcode::schema:
                    c.front.schemas.push_back(read_schema(r));
                    break;
                case opcode::channel: {
                    channel next = read_channel(r);
                    if (next.id != c.front.channels.size() + 1 || next.id > most_channels) return s.at();
                    c.front.channels.push_back(std::move(next));
                    break;
                }
                default:
                    return s.at();
            }
            h.length -= r.rest().size();
        } catch (const format_error&) {
            return s.at();
        }
    return s.at();
}

u32 crc_of_file(int fd, u64 from, u64 until) {
    buffer piece;
    u32 crc = 0;
    for (u64 at = from; at < until; at += piece.size()) {
        piece.resize(static_cast<std::size_t>(std::min(read_at_once, until - at)));
        if (!read_at(fd, at, piece)) throw format_error("it was truncated while it was read");
        crc = crc_of(piece, crc);
    }
    return crc;
}

/// Returns the number of chunks that a Statistics record states.
u32 chunks_counted(std::span<const std::byte> content) {
    byte_reader r(content);
    (void)r.raw(sizeof(u64) + sizeof(u16) + 3 * sizeof(u32));
    return r.number<u32>();
}

/// The footer at the end of a file. If there is no value, the end of the file is missing or damaged.
struct footer {
    u64 at = 0;     ///< the footer's own position
    u64 start = 0;  ///< of the summary
    u32 crc = 0;    ///< 0: there is no checksum, because another program has written the file
};

/// Returns the footer of a file whose summary begins at `earliest` or later.
std::optional<footer> read_footer(int fd, u64 earliest) {
    const u64 size = size_of(fd), tail = footer_bytes + sizeof magic;
    std::byte raw[footer_bytes + sizeof magic];
    if (size < earliest + tail || !read_at(fd, size - tail, raw)) return {};
    if (std::memcmp(raw + footer_bytes, magic, sizeof magic) != 0) return {};
    byte_reader r({raw, static_cast<std::size_t>(footer_bytes)});
    if (static_cast<opcode>(r.number<u8>()) != opcode::footer || r.number<u64>() != 20) return {};
    footer f{size - tail, r.number<u64>(), 0};
    (void)r.number<u64>();
    f.crc = r.number<u32>();
    return f.start >= earliest && f.start <= f.at ? std::optional(f) : std::nullopt;
}

/// Reads the summary into c.chunks. Returns false if the summary's checksum is wrong or the summary is
/// inconsistent: the records of the summary must end at the footer, and the units must be in the file's
/// order, between the preamble and the end of the data.
bool read_summary(int fd, const footer& f, contents& c) try {
    if (f.crc != 0 && f.crc != crc_of_file(fd, f.start, f.at + footer_bytes - sizeof f.crc)) return false;
    record_stream s(fd, f.start);
    u64 counted = 0;
    bool has_count = false;
    for (head h; s.at() < f.at && s.next(h); s.skip(h)) {
        if (h.code == opcode::statistics) counted = chunks_counted(s.content(h, h.length)), has_count = true;
        if (h.code != opcode::chunk_index) continue;
        chunk_entry unit = read_chunk_index(s.content(h, h.length));
        if (unit.start < c.end() ||
            !is_within(unit.start, add_sat(unit.length, unit.index_length), f.start - data_end_bytes))
            return false;
        c.chunks.push_back(std::move(unit));
    }
    return s.at() == f.at && (!has_count || counted == c.chunks.size());
} catch (const format_error&) {  // an invalid record
    return false;
}

/// Returns true for the names of the compressions that recorders write, even if this program was built
/// without them.
bool is_known(const std::string& compression) {
    return compression.empty() || compression == "lz4" || compression == "zstd";
}

/// Removes the bytes after the last complete record.
void cut_to_records(buffer& records) {
    u64 at = 0;
    while (is_within(at, head_bytes, records.size())) {
        const u64 length = read_head(std::span(records).subspan(static_cast<std::size_t>(at))).length;
        if (!is_within(at + head_bytes, length, records.size())) break;
        at += head_bytes + length;
    }
    records.resize(static_cast<std::size_t>(at));
}

// Without its end a chunk has no checksum: the records' own lengths determine which of them are complete.
void read_cut_chunk(int fd, const chunk_entry& c, buffer& compressed, buffer& records) {
    const u64 size = size_of(fd), from = c.start + head_bytes + chunk_head_bytes + c.compression.size();
    if (from >= size) throw format_error("it ends within the head of its last chunk");
    compressed.resize(static_cast<std::size_t>(std::min(c.compressed, size - from)));
    if (!read_at(fd, from, compressed)) throw format_error("it was truncated while it was read");
    const u64 most = std::min(most_records, most_uncompressed(c.compression, compressed.size()));
    records.resize(static_cast<std::size_t>(std::min(c.uncompressed, most)));
    records.resize(decompress_beginning(c.compression, compressed, records));
    cut_to_records(records);
}

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

contents read_front(int fd) {
    unsigned char raw[sizeof magic];
    if (!read_at(fd, 0, std::as_writable_bytes(std::span(raw))) || std::memcmp(raw, magic, sizeof magic) != 0)
        throw format_error("it is not an MCAP file");
    contents c;
    record_stream s(fd, sizeof magic);
    c.front_bytes = read_front(s, c);
    return c;
}

contents scan(int fd) {
    contents c = read_front(fd);
    const std::optional<footer> f = read_footer(fd, c.front_bytes + data_end_bytes);
    c.ended = f && read_summary(fd, *f, c);
    if (!c.ended) {
        c.chunks.clear();
        find_units(fd, c);
    }
    // If the DataEnd record itself is damaged, its position follows from the footer.
    if (c.data_end == 0 && f && f->start - data_end_bytes >= c.end()) c.data_end = f->start - data_end_bytes;
    mark_gaps(fd, c);
    return c;
}

std::optional<chunk_entry> read_chunk_head(std::span<const std::byte> raw, u64 at) {
    if (raw.size() < head_bytes + chunk_head_bytes) return {};
    const head h = read_head(raw);
    if (h.code != opcode::chunk) return {};
    byte_reader r(raw.subspan(head_bytes));
    chunk_entry c;
    c.start = at;
    c.length = add_sat(head_bytes, h.length);
    c.first_ns = r.number<u64>();
    c.last_ns = r.number<u64>();
    c.uncompressed = r.number<u64>();
    (void)r.number<u32>();
    const u32 name = r.number<u32>();
    if (name > longest_compression_name || r.rest().size() < name + sizeof(u64)) return {};
    const auto text = r.raw(name);
    c.compression.assign(reinterpret_cast<const char*>(text.data()), text.size());
    c.compressed = r.number<u64>();
    if (h.length != add_sat(chunk_head_bytes + name, c.compressed)) return {};
    return c;
}

std::optional<chunk_entry> cut_chunk_at(int fd, u64 at) try {
    std::array<std::byte, chunk_head_room> raw{};
    const u64 size = size_of(fd);
    if (at >= size) return {};
    const auto there = std::span(raw).first(static_cast<std::size_t>(std::min<u64>(raw.size(), size - at)));
    if (!read_at(fd, at, there)) return {};
    std::optional<chunk_entry> c = read_chunk_head(there, at);
    if (!c || is_within(at, c->length, size) || !is_known(c->compression)) return {};
    c->is_cut = true;
    c->whole = false;
    buffer compressed, records;
    read_chunk(fd, *c, compressed, records);
    for (const message& m : read_messages(records))
        if (m.channel - 1U < most_channels) c->channels |= bit_of(m.channel);
    c->length = size - at;  // as far as it is there
    return records.empty() ? std::nullopt : c;
} catch (const format_error&) {
    return {};
}

void read_chunk(int fd, const chunk_entry& c, buffer& compressed, buffer& records) {
    if (!c.damage.empty()) throw format_error(c.damage);
    if (c.is_cut) return read_cut_chunk(fd, c, compressed, records);
    if (!is_known(c.compression))
        throw format_error(fmt::format("the chunk at {} has an unknown compression", c.start));
    const u64 head_of_chunk = head_bytes + chunk_head_bytes + c.compression.size();
    // These numbers come from the file and determine memory allocations, so none of them may exceed the
    // content of the file.
    if (c.length != add_sat(head_of_chunk, c.compressed) || !is_within(c.start, c.length, size_of(fd)))
        throw format_error(fmt::format("the chunk at {} and its index do not match", c.start));
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
        throw format_error(fmt::format("the chunk at {} is damaged: its checksum is wrong", c.start));
}

}  // namespace carousel::stages::mcap
