#include "stages/recording/mcap/record.hpp"

#include <fmt/format.h>
#include <isa-l/crc.h>

#include <bit>

namespace carousel::stages::mcap {

u32 crc_of(std::span<const std::byte> bytes, u32 before) noexcept {
    return crc32_gzip_refl(before, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

buffer encode(const preamble& p) {
    buffer out;
    byte_writer(out).raw(std::as_bytes(std::span(magic)));
    put_record(out, opcode::header, [&](byte_writer& w) { w.text(""), w.text(p.library); });
    put_record(out, opcode::metadata, [&](byte_writer& w) { w.text(p.about.name), w.map(p.about.values); });
    for (const schema& s : p.schemas) put(out, s);
    for (const channel& c : p.channels) put(out, c);
    return out;
}

void put(buffer& to, const schema& s) {
    put_record(to, opcode::schema, [&](byte_writer& w) {
        w.number(s.id);
        w.text(s.name);
        w.text(s.encoding);
        w.number(static_cast<u32>(s.data.size()));
        w.raw(s.data);
    });
}

void put(buffer& to, const channel& c) {
    put_record(to, opcode::channel, [&](byte_writer& w) {
        w.number(c.id);
        w.number(c.schema);
        w.text(c.topic);
        w.text(c.encoding);
        w.map(c.metadata);
    });
}

void put(buffer& to, const chunk_entry& c, std::span<const channel> channels) {
    put_record(to, opcode::chunk_index, [&](byte_writer& w) {
        w.number(c.first_ns);
        w.number(c.last_ns);
        w.number(c.start);
        w.number(c.length);
        w.number(static_cast<u32>(static_cast<u64>(std::popcount(c.channels)) * (sizeof(u16) + sizeof(u64))));
        u64 at = c.start + c.length;
        for (const channel& one : channels) {
            if (c.has(one.id)) {
                w.number(one.id);
                w.number(at);
            }
            at += head_bytes + (c.has(one.id) ? message_index_bytes : empty_message_index_bytes);
        }
        w.number(c.index_length);
        w.text(c.compression);
        w.number(c.compressed);
        w.number(c.uncompressed);
    });
}

void put_message_head(buffer& to, const message& m) {
    byte_writer w(to);
    w.number(static_cast<u8>(opcode::message));
    w.number(u64{22} + m.data.size());
    w.number(m.channel);
    w.number(m.sequence);
    w.number(m.log_ns);
    w.number(m.log_ns);
}

void put_message_index(buffer& to, u16 channel, u64 log_ns, u64 offset) {
    put_record(to, opcode::message_index, [&](byte_writer& w) {
        w.number(channel);
        w.number(u32{16});
        w.number(log_ns);
        w.number(offset);
    });
}

void put_empty_message_index(buffer& to, u16 channel) {
    put_record(to, opcode::message_index, [&](byte_writer& w) {
        w.number(channel);
        w.number(u32{0});
    });
}

void put_chunk_head(buffer& to, const chunk_entry& c, u32 crc) {
    byte_writer w(to);
    w.number(static_cast<u8>(opcode::chunk));
    w.number(chunk_head_bytes + c.compression.size() + c.compressed);
    w.number(c.first_ns);
    w.number(c.last_ns);
    w.number(c.uncompressed);
    w.number(crc);
    w.text(c.compression);
    w.number(c.compressed);
}

u64 bit_of(u16 channel) {
    if (channel == 0 || channel > most_channels)
        throw format_error(fmt::format("it has a channel {}, but a recording has at most {} channels",
                                       channel, most_channels));
    return u64{1} << (channel - 1U);
}

schema read_schema(byte_reader& r) {
    schema s;
    s.id = r.number<u16>();
    s.name = r.text();
    s.encoding = r.text();
    const auto data = r.raw(r.number<u32>());
    s.data.assign(data.begin(), data.end());
    return s;
}

channel read_channel(byte_reader& r) {
    channel c;
    c.id = r.number<u16>();
    c.schema = r.number<u16>();
    c.topic = r.text();
    c.encoding = r.text();
    c.metadata = r.map();
    return c;
}

metadata read_metadata(byte_reader& r) {
    metadata m;
    m.name = r.text();
    m.values = r.map();
    return m;
}

chunk_entry read_chunk_index(std::span<const std::byte> content) {
    byte_reader r(content);
    chunk_entry c;
    c.first_ns = r.number<u64>();
    c.last_ns = r.number<u64>();
    c.start = r.number<u64>();
    c.length = r.number<u64>();
    for (byte_reader indexes(r.raw(r.number<u32>())); !indexes.empty(); (void)indexes.number<u64>())
        c.channels |= bit_of(indexes.number<u16>());
    c.index_length = r.number<u64>();
    c.compression = r.text();
    c.compressed = r.number<u64>();
    c.uncompressed = r.number<u64>();
    return c;
}

std::vector<message> read_messages(std::span<const std::byte> records) {
    std::vector<message> out;
    for (byte_reader r(records); !r.empty();) {
        const auto code = static_cast<opcode>(r.number<u8>());
        byte_reader content(r.raw(r.number<u64>()));
        if (code != opcode::message) continue;
        message m;
        m.channel = content.number<u16>();
        m.sequence = content.number<u32>();
        m.log_ns = content.number<u64>();
        (void)content.number<u64>();
        m.data = content.rest();
        out.push_back(m);
    }
    return out;
}

}  // namespace carousel::stages::mcap
