#include "stages/recording/mcap/scan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>

#include "core/types.hpp"

namespace carousel::stages::mcap {
namespace {

constexpr u64 searched_at_once = u64{1} << 20U;

/// Limit of the number of bytes that are read to verify chunks. It ensures that even a hostile file is read
/// in linear time.
u64 most_read_again(u64 file_bytes) { return add_sat(u64{64} << 20U, mul_sat(file_bytes, 16)); }

class unit_search {
public:
    unit_search(int fd, const preamble& front) : fd_(fd), front_(front), size_(size_of(fd)) {}

    /// Returns the unit that begins at `at`: a chunk whose lengths are consistent, followed by a message
    /// index of each channel; if an index is damaged or missing, the chunk's checksum must be correct.
    [[nodiscard]] std::optional<chunk_entry> unit_at(u64 at) {
        std::optional<chunk_entry> unit = chunk_at(at);
        if (unit && !read_indexes(*unit) && !read_channels(*unit)) unit.reset();
        return unit;
    }
    /// Returns true if a DataEnd record begins at `at` and is followed by a record of a summary or by the end
    /// of the file.
    [[nodiscard]] bool data_ends_at(u64 at) const {
        std::array<std::byte, data_end_bytes + head_bytes> raw{};
        if (!is_within(at, data_end_bytes, size_)) return false;
        const u64 there = std::min<u64>(raw.size(), size_ - at);
        if (!read_at(fd_, at, std::span(raw).first(static_cast<std::size_t>(there)))) return false;
        const head h = read_head(raw);
        if (h.code != opcode::data_end || h.length != data_end_bytes - head_bytes) return false;
        if (there < raw.size()) return true;  // cut off here
        const opcode next = read_head(std::span(raw).subspan(data_end_bytes)).code;
        return next == opcode::schema || next == opcode::footer || next == opcode::statistics;
    }
    /// Returns the position after `at` where the next unit or DataEnd begins; the size of the file if there
    /// is none.
    [[nodiscard]] u64 next_after(u64 at) {
        buffer piece;
        for (u64 from = at + 1; from < size_; from += searched_at_once) {
            piece.resize(
                static_cast<std::size_t>(std::min(searched_at_once + chunk_head_room, size_ - from)));
            if (!read_at(fd_, from, piece)) return size_;
            for (u64 k = 0; k < std::min<u64>(piece.size(), searched_at_once); ++k) {
                const std::span<const std::byte> rest = std::span(piece).subspan(static_cast<std::size_t>(k));
                if (rest.front() == std::byte{static_cast<u8>(opcode::chunk)}) {
                    if (parse_chunk_head(rest, from + k) && unit_at(from + k)) return from + k;
                } else if (rest.front() == std::byte{static_cast<u8>(opcode::data_end)}) {
                    if (data_ends_at(from + k)) return from + k;
                }
            }
        }
        return size_;
    }

private:
    /// Returns the chunk at `at`. `raw`: the bytes from `at` on. Returns nothing unless these bytes begin
    /// with the head of a chunk that lies within the file and has consistent lengths.
    [[nodiscard]] std::optional<chunk_entry> parse_chunk_head(std::span<const std::byte> raw, u64 at) const {
        std::optional<chunk_entry> c = read_chunk_head(raw, at);
        return c && is_within(at, c->length, size_) ? c : std::nullopt;
    }
    [[nodiscard]] std::optional<chunk_entry> chunk_at(u64 at) const {
        std::array<std::byte, chunk_head_room> raw{};
        if (at >= size_) return {};
        const auto there =
            std::span(raw).first(static_cast<std::size_t>(std::min<u64>(raw.size(), size_ - at)));
        return read_at(fd_, at, there) ? parse_chunk_head(there, at) : std::nullopt;
    }
    /// Returns the size in bytes of the message indexes of a unit that has messages of `channels`.
    [[nodiscard]] u64 index_bytes(u64 channels) const {
        const auto messages = static_cast<u64>(std::popcount(channels));
        return front_.channels.size() * (head_bytes + empty_message_index_bytes) +
               messages * (message_index_bytes - empty_message_index_bytes);
    }
    /// Reads the message indexes after the chunk. Returns false unless there is one index of each channel, in
    /// their order.
    [[nodiscard]] bool read_indexes(chunk_entry& unit) {
        const u64 from = unit.start + unit.length;
        indexes_.resize(static_cast<std::size_t>(std::min(index_bytes(~u64{0}), size_ - from)));
        if (!read_at(fd_, from, indexes_)) return false;
        byte_reader r(indexes_);
        u64 channels = 0;
        for (const channel& c : front_.channels) {
            if (r.rest().size() < head_bytes + empty_message_index_bytes) return false;
            const head h = read_head(r.raw(head_bytes));
            if (h.code != opcode::message_index || r.rest().size() < h.length ||
                (h.length != empty_message_index_bytes && h.length != message_index_bytes))
                return false;
            byte_reader content(r.raw(h.length));
            if (content.number<u16>() != c.id ||
                content.number<u32>() != h.length - empty_message_index_bytes)
                return false;
            if (h.length == message_index_bytes) channels |= bit_of(c.id);
        }
        unit.channels = channels;
        unit.index_length = index_bytes(channels);
        return true;
    }
    /// Reads the messages in the chunk. Returns false if the chunk's checksum is wrong, or if this search has
    /// already read the permitted number of bytes.
    [[nodiscard]] bool read_channels(chunk_entry& unit) {
        const u64 cost = add_sat(unit.length, unit.uncompressed);
        if (cost > may_read_) return false;
        may_read_ -= cost;
        try {
            read_chunk(fd_, unit, compressed_, records_);
            for (const message& m : read_messages(records_))
                if (m.channel <= front_.channels.size()) unit.channels |= bit_of(m.channel);
        } catch (const format_error&) {
            return false;
        }
        unit.whole = false;
        unit.index_length = std::min(index_bytes(unit.channels), size_ - unit.start - unit.length);
        return unit.channels != 0;
    }

    int fd_;
    const preamble& front_;
    u64 size_, may_read_ = most_read_again(size_);
    buffer indexes_, compressed_, records_;
};

/// Determines which frames are missing in a gap, from the numbers of the frames before and after the gap.
class gap_reader {
public:
    gap_reader(int fd, const contents& c) : fd_(fd), c_(c), may_read_(most_read_again(size_of(fd))) {
        for (const chunk_entry& unit : c.chunks)
            smallest_ = std::min(smallest_, unit.length + unit.index_length);
    }
    struct missing {
        u64 frames = 0;    ///< number of missing frames; limited by the number of frames for which the gap
                           ///< has room
        std::string text;  ///< which frames are missing
    };
    /// Returns the frames of channel `of` that are missing in the gap of `bytes` bytes before chunks[next].
    [[nodiscard]] missing in_gap(const channel& of, std::size_t next, u64 bytes) {
        const auto has = [&](const chunk_entry& unit) { return unit.has(of.id); };
        const auto split = c_.chunks.begin() + static_cast<std::ptrdiff_t>(next);
        const auto after = std::find_if(split, c_.chunks.end(), has);
        const auto before = std::find_if(std::make_reverse_iterator(split), c_.chunks.rend(), has);
        std::optional<u64> low = 0, high;
        if (before != c_.chunks.rend()) {
            low = number_in(*before, of.id);
            if (low) ++*low;
        }
        if (after != c_.chunks.end()) high = number_in(*after, of.id);
        if (low && high && *low == *high) return {};
        if (low && high && *low < *high) {
            const std::string which = *low + 1 == *high ? fmt::format("frame {}", *low)
                                                        : fmt::format("frames {} to {}", *low, *high - 1);
            // A missing unit is assumed to have at least a quarter of the size of the smallest remaining
            // unit, because a compressed unit may be much smaller than the remaining ones.
            const u64 room = std::max<u64>(1, bytes / std::max<u64>(1, smallest_ / 4));
            return {std::min(*high - *low, room), fmt::format("{} of \"{}\"", which, of.topic)};
        }
        if (high) return {1, fmt::format("frames of \"{}\" before {}", of.topic, *high)};
        if (low) return {1, fmt::format("frames of \"{}\" from {} on", of.topic, *low)};
        return {1, fmt::format("frames of \"{}\"", of.topic)};
    }

private:
    [[nodiscard]] std::optional<u64> number_in(const chunk_entry& unit, u16 channel) {
        const u64 cost = add_sat(unit.length, unit.uncompressed);
        if (cost > may_read_) return {};
        may_read_ -= cost;
        try {
            read_chunk(fd_, unit, compressed_, records_);
            for (const message& m : read_messages(records_))
                if (m.channel == channel) return m.sequence;
        } catch (const format_error&) {  // damaged as well
        }
        return {};
    }

    int fd_;
    const contents& c_;
    u64 may_read_, smallest_ = ~u64{0};
    buffer compressed_, records_;
};

}  // namespace

void find_units(int fd, contents& c) {
    unit_search search(fd, c.front);
    const u64 size = size_of(fd);
    for (u64 at = c.front_bytes; at < size;) {
        if (std::optional<chunk_entry> unit = search.unit_at(at)) {
            at = unit->end();
            c.chunks.push_back(std::move(*unit));
        } else if (search.data_ends_at(at)) {
            c.data_end = at;
            return;
        } else {
            at = search.next_after(at);
        }
    }
    if (std::optional<chunk_entry> cut = cut_chunk_at(fd, c.end()); cut && cut->channels != 0)
        c.chunks.push_back(std::move(*cut));
}

void mark_gaps(int fd, contents& c) {
    gap_reader reader(fd, c);
    std::vector<chunk_entry> all;
    u64 at = c.front_bytes;
    const auto mark = [&](std::size_t next, u64 until) {
        if (until <= at) return;
        std::vector<u64> channels;  // for each missing unit, in order, its channels
        std::string which;
        for (const channel& of : c.front.channels) {
            const gap_reader::missing m = reader.in_gap(of, next, until - at);
            if (m.frames == 0) continue;
            which += (which.empty() ? "" : ", ") + m.text;
            if (channels.size() < m.frames) channels.resize(static_cast<std::size_t>(m.frames));
            for (u64 k = 0; k < m.frames; ++k) channels[static_cast<std::size_t>(k)] |= bit_of(of.id);
        }
        for (const u64 mask : channels) {
            chunk_entry lost;
            lost.start = at;
            lost.length = until - at;
            lost.channels = mask;
            lost.damage = fmt::format("bytes {} to {} are damaged; missing: {}", at, until - 1, which);
            all.push_back(std::move(lost));
        }
    };
    for (std::size_t k = 0; k < c.chunks.size(); ++k) {
        mark(k, c.chunks[k].start);
        all.push_back(c.chunks[k]);
        at = c.chunks[k].end();
    }
    if (c.data_end != 0) mark(c.chunks.size(), c.data_end);
    c.chunks = std::move(all);
}

}  // namespace carousel::stages::mcap
