#include "stages/recording/mcap/any_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace carousel::stages::mcap {
namespace {

constexpr u64 message_head_bytes = 2 + 4 + 8 + 8;
constexpr std::size_t most_messages = std::size_t{1} << 24U;

class any_scanner {
public:
    explicit any_scanner(int fd) : fd_(fd), size_(size_of(fd)) {}

    any_contents scan(const std::function<bool(const any_contents&)>& enough) {
        unsigned char raw[sizeof magic];
        if (!read_at(fd_, 0, std::as_writable_bytes(std::span(raw))) ||
            std::memcmp(raw, magic, sizeof magic) != 0)
            throw format_error("it is not an MCAP file");
        record_stream s(fd_, sizeof magic);
        for (head h; s.next(h); s.skip(h)) {
            if (h.code == opcode::data_end || h.code == opcode::footer) {
                out_.has_end = true;
                return std::move(out_);
            }
            if (h.code == opcode::chunk)
                take_chunk(s.at());
            else
                take_record(s, h);
            if (enough && enough(out_)) return std::move(out_);
        }
        take_end(s.at());
        return std::move(out_);
    }

private:
    void take_record(record_stream& s, const head& h) try {
        if (h.code == opcode::message) {
            if (h.length < message_head_bytes) throw format_error("a message without a head");
            byte_reader r(s.content(h, message_head_bytes));
            add_message(r, no_chunk, s.at() + head_bytes + message_head_bytes, h.length - message_head_bytes);
        } else if (h.code == opcode::header) {
            byte_reader r(s.content(h, h.length));
            (void)r.text();
            out_.library = r.text();
        } else if (h.code == opcode::schema || h.code == opcode::channel) {
            take_description(h.code, s.content(h, h.length));
        }
    } catch (const format_error& e) {
        note(fmt::format("the record at {}: {}", s.at(), e.what()));
    }
    void take_description(opcode code, std::span<const std::byte> content) {
        byte_reader r(content);
        if (code == opcode::schema) {
            schema next = read_schema(r);
            const auto same = [&](const schema& each) { return each.id == next.id; };
            if (std::none_of(out_.schemas.begin(), out_.schemas.end(), same))
                out_.schemas.push_back(std::move(next));
        } else {
            channel next = read_channel(r);
            if (out_.channel_of(next.id) == nullptr) out_.channels.push_back(std::move(next));
        }
    }
    void take_chunk(u64 at) {
        std::array<std::byte, chunk_head_room> raw{};
        const auto there =
            std::span(raw).first(static_cast<std::size_t>(std::min<u64>(raw.size(), size_ - at)));
        std::optional<chunk_entry> c;
        if (read_at(fd_, at, there)) c = read_chunk_head(there, at);
        if (!c) {
            ++out_.lost_chunks;
            return note(fmt::format("the chunk at {} has an invalid head", at));
        }
        add_chunk(std::move(*c));
    }
    void add_chunk(chunk_entry c) {
        try {
            read_chunk(fd_, c, compressed_, records_);
            add_records();
        } catch (const error& e) {
            ++out_.lost_chunks;
            return note(e.what());
        }
        out_.chunks.push_back(std::move(c));
    }
    void add_records() {
        for (byte_reader r(records_); !r.empty();) {
            const auto code = static_cast<opcode>(r.number<u8>());
            const std::span<const std::byte> content = r.raw(r.number<u64>());
            if (code == opcode::schema || code == opcode::channel) take_description(code, content);
            if (code != opcode::message || content.size() < message_head_bytes) continue;
            byte_reader m(content);
            const auto at = static_cast<u64>(content.data() - records_.data()) + message_head_bytes;
            add_message(m, out_.chunks.size(), at, content.size() - message_head_bytes);
        }
    }
    void add_message(byte_reader& r, std::size_t chunk, u64 at, u64 bytes) {
        if (out_.messages.size() >= most_messages) throw format_error("it has too many messages");
        message_place m{chunk, at, bytes};
        m.channel = r.number<u16>();
        m.sequence = r.number<u32>();
        m.log_ns = r.number<u64>();
        out_.messages.push_back(m);
    }
    // The bytes from `at` on are not a complete record: their writer died, or they are damaged.
    void take_end(u64 at) {
        if (std::optional<chunk_entry> cut = cut_chunk_at(fd_, at)) {
            const std::size_t before = out_.messages.size();
            add_chunk(std::move(*cut));
            note(fmt::format("it ends within the chunk at {}, of which {} messages are complete", at,
                             out_.messages.size() - before));
        } else if (at < size_) {
            note(fmt::format("it ends within the record at {}", at));
        } else {
            note("its end is missing");
        }
        out_.cut_at = at;
    }
    void note(std::string text) {
        if (out_.text.empty()) out_.text = std::move(text);
    }

    int fd_;
    u64 size_;
    any_contents out_;
    buffer compressed_, records_;
};

}  // namespace

const channel* any_contents::channel_of(u16 id) const noexcept {
    const auto at =
        std::find_if(channels.begin(), channels.end(), [id](const channel& c) { return c.id == id; });
    return at == channels.end() ? nullptr : &*at;
}

const schema* any_contents::schema_of(u16 channel_id) const noexcept {
    const channel* c = channel_of(channel_id);
    if (c == nullptr) return nullptr;
    const auto at =
        std::find_if(schemas.begin(), schemas.end(), [c](const schema& s) { return s.id == c->schema; });
    return at == schemas.end() ? nullptr : &*at;
}

any_contents scan_any(int fd, const std::function<bool(const any_contents&)>& enough) {
    return any_scanner(fd).scan(enough);
}

std::span<const std::byte> message_reader::read(const message_place& at) {
    if (at.chunk == no_chunk) {
        if (!is_within(at.at, at.bytes, size_of(fd_)))
            throw format_error("it was truncated while it was read");
        alone_.resize(static_cast<std::size_t>(at.bytes));
        if (!read_at(fd_, at.at, alone_)) throw format_error("it was truncated while it was read");
        return alone_;
    }
    if (at.chunk != chunk_) {
        chunk_ = no_chunk;
        read_chunk(fd_, of_->chunks.at(at.chunk), compressed_, records_);
        chunk_ = at.chunk;
    }
    if (!is_within(at.at, at.bytes, records_.size())) throw format_error("it has changed while it was read");
    return std::span(records_).subspan(static_cast<std::size_t>(at.at), static_cast<std::size_t>(at.bytes));
}

}  // namespace carousel::stages::mcap
