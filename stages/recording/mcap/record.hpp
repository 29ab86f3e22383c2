#pragma once
// The records of an MCAP file that recordings use, and their layout. Plain data; each encoder appends a
// complete record.
// A recording is laid out so that a recorder may die at any instruction:
//   magic, Header, Metadata, Schemas, Channels             one write
//   Chunk, MessageIndex of each channel                    one write per frame: a *unit*; all rings of that
//                                                          frame, or one of them
//   DataEnd, summary, Footer, magic                        at the end of the run
// The next incarnation cuts off an incomplete unit at the end of the file. If the end of a file is missing,
// readers find the units by reading them one after the other. After every chunk there is a MessageIndex of
// every channel, which is empty if the channel has no message in that chunk. So a reader can determine from
// the heads alone whether a unit is complete and which channels have messages in it.

#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/errors.hpp"
#include "core/types.hpp"

namespace carousel::stages::mcap {

// Little-endian numbers, texts and maps in the encoding of MCAP; the format is described at
// https://mcap.dev/spec.

using text_map = std::map<std::string, std::string>;

/// Invalid bytes in a file. The caller adds the file's name.
class format_error : public error {
public:
    explicit format_error(const std::string& what) : error(exit_code::usage, what) {}
};

/// Appends to a buffer.
class byte_writer {
public:
    explicit byte_writer(std::vector<std::byte>& to) noexcept : to_(&to) {}
    template <typename T>
    requires std::is_integral_v<T>
    void number(T value) { append(&value, sizeof value); }
    void raw(std::span<const std::byte> bytes) { append(bytes.data(), bytes.size()); }
    void text(std::string_view t) {
        number(static_cast<u32>(t.size()));
        raw(std::as_bytes(std::span(t)));
    }
    void map(const text_map& m) {
        u32 bytes = 0;
        for (const auto& [key, value] : m) bytes += static_cast<u32>(8 + key.size() + value.size());
        number(bytes);
        for (const auto& [key, value] : m) text(key), text(value);
    }

private:
    /// Copies instead of calling vector::insert, whose inlined form causes a false warning of g++ 12.
    void append(const void* from, std::size_t bytes) {
        if (bytes == 0) return;
        const std::size_t end = to_->size();
        to_->resize(end + bytes);
        std::memcpy(to_->data() + end, from, bytes);
    }

    std::vector<std::byte>* to_;
};

/// Reads from the front. Throws format_error at the end.
class byte_reader {
public:
    explicit byte_reader(std::span<const std::byte> from) noexcept : from_(from) {}
    template <typename T>
    [[nodiscard]] T number() {
        T value{};
        std::memcpy(&value, raw(sizeof value).data(), sizeof value);
        return value;
    }
    [[nodiscard]] std::span<const std::byte> raw(u64 bytes) {
        if (bytes > from_.size()) throw format_error("a record is incomplete");
        const auto out = from_.first(static_cast<std::size_t>(bytes));
        from_ = from_.subspan(static_cast<std::size_t>(bytes));
        return out;
    }
    [[nodiscard]] std::string text() {
        const auto bytes = raw(number<u32>());
        return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    }
    [[nodiscard]] text_map map() {
        byte_reader inner(raw(number<u32>()));
        text_map out;
        while (!inner.empty()) {
            std::string key = inner.text();
            out[std::move(key)] = inner.text();
        }
        return out;
    }
    [[nodiscard]] bool empty() const noexcept { return from_.empty(); }
    [[nodiscard]] std::span<const std::byte> rest() const noexcept { return from_; }

private:
    std::span<const std::byte> from_;
};

inline constexpr unsigned char magic[8] = {0x89, 'M', 'C', 'A', 'P', 0x30, '\r', '\n'};
inline constexpr u64 head_bytes = 9;  ///< size of a record's head: opcode, length
inline constexpr u64 footer_bytes = head_bytes + 20;
inline constexpr u64 chunk_head_bytes = 8 + 8 + 8 + 4 + 4 + 8;  ///< size of the content of a Chunk before its
                                                                ///< records, without the compression's name
inline constexpr u64 data_end_bytes = head_bytes + 4;

enum class opcode : u8 {
    header = 0x01,
    footer = 0x02,
    schema = 0x03,
    channel = 0x04,
    message = 0x05,
    chunk = 0x06,
    message_index = 0x07,
    chunk_index = 0x08,
    statistics = 0x0B,
    metadata = 0x0C,
    metadata_index = 0x0D,
    summary_offset = 0x0E,
    data_end = 0x0F,
};

inline constexpr std::size_t most_channels = 64;  ///< each channel has one bit in chunk_entry::channels

struct schema {
    u16 id = 0;  ///< from 1
    std::string name, encoding;
    std::vector<std::byte> data;
};
struct channel {
    u16 id = 0, schema = 0;
    std::string topic, encoding;
    text_map metadata;
};
struct metadata {
    std::string name;
    text_map values;
};
/// The records that precede the first unit.
struct preamble {
    std::string library;
    mcap::metadata about;
    std::vector<mcap::schema> schemas;
    std::vector<mcap::channel> channels;
};
struct message {
    u16 channel = 0;
    u32 sequence = 0;  ///< has only 32 bits, because the field in MCAP has 32 bits
    u64 log_ns = 0;    ///< wall clock
    std::span<const std::byte> data;
};
/// The position of a unit.
struct chunk_entry {
    u64 first_ns = 0, last_ns = 0;
    u64 start = 0, length = 0;  ///< of the chunk's record
    u64 index_length = 0;       ///< length of the message indexes after the chunk
    u64 compressed = 0, uncompressed = 0;
    std::string compression;
    u64 channels = 0;     ///< the channels that have messages in the chunk, one bit each
    bool whole = true;    ///< the chunk's message indexes are complete
    bool is_cut = false;  ///< the file ends within the chunk; its complete messages can be read
    std::string damage;   ///< not empty: a frame is missing here, and this text is the reason; the entry
                          ///< cannot be read
    [[nodiscard]] bool has(u16 channel) const noexcept {
        return channel - 1U < most_channels && (channels >> (channel - 1U) & 1U) != 0;
    }
    [[nodiscard]] u64 end() const noexcept { return start + length + index_length; }
};

/// The bit that represents a channel in chunk_entry::channels. Throws format_error if it is not a channel of
/// a recording.
[[nodiscard]] u64 bit_of(u16 channel);

using buffer = std::vector<std::byte>;

[[nodiscard]] u32 crc_of(std::span<const std::byte> bytes, u32 before = 0) noexcept;

[[nodiscard]] buffer encode(const preamble& p);
void put(buffer& to, const schema& s);
void put(buffer& to, const channel& c);
void put(buffer& to, const chunk_entry& c, std::span<const channel> channels);
/// Appends the head of a message's record, without the message's data.
void put_message_head(buffer& to, const message& m);
/// `times_and_offsets` of one message.
void put_message_index(buffer& to, u16 channel, u64 log_ns, u64 offset);
/// Appends the index of a channel that has no message in the chunk.
void put_empty_message_index(buffer& to, u16 channel);
inline constexpr u64 empty_message_index_bytes = 2 + 4, message_index_bytes = empty_message_index_bytes + 16;
/// Appends the part of a chunk's record that precedes the compressed records.
void put_chunk_head(buffer& to, const chunk_entry& c, u32 crc);
/// Calls `content` and stores the bytes that it appends in a record.
template <typename F>
void put_record(buffer& to, opcode code, F&& content) {
    byte_writer w(to);
    w.number(static_cast<u8>(code));
    const std::size_t length_at = to.size();
    w.number(u64{0});
    content(w);
    const u64 length = to.size() - length_at - sizeof(u64);
    std::memcpy(to.data() + length_at, &length, sizeof length);
}

/// Reads the content of a record of the preamble. After the call `r` is positioned after the record. Throws
/// format_error.
[[nodiscard]] schema read_schema(byte_reader& r);
[[nodiscard]] channel read_channel(byte_reader& r);
[[nodiscard]] metadata read_metadata(byte_reader& r);
[[nodiscard]] chunk_entry read_chunk_index(std::span<const std::byte> content);
/// The messages among the records of a chunk.
[[nodiscard]] std::vector<message> read_messages(std::span<const std::byte> records);

}  // namespace carousel::stages::mcap
