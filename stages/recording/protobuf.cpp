#include "stages/recording/protobuf.hpp"

#include <cstring>

namespace carousel::stages::proto {
namespace {

enum wire : u32 { wire_varint = 0, wire_64 = 1, wire_bytes = 2, wire_32 = 5 };

template <typename T>
void append(buffer& to, T value) {
    const auto* from = reinterpret_cast<const std::byte*>(&value);
    to.insert(to.end(), from, from + sizeof value);
}

bool take_varint(std::span<const std::byte>& from, u64& out) {
    out = 0;
    for (u32 shift = 0; shift < 64 && !from.empty(); shift += 7) {
        const u64 b = static_cast<u64>(from.front());
        from = from.subspan(1);
        out |= (b & 0x7FU) << shift;
        if (b < 0x80U) return true;
    }
    return false;
}

template <typename T>
bool take_fixed(std::span<const std::byte>& from, u64& out) {
    if (from.size() < sizeof(T)) return false;
    T value{};
    std::memcpy(&value, from.data(), sizeof value);
    from = from.subspan(sizeof value);
    out = value;
    return true;
}

}  // namespace

void writer::raw_varint(u64 value) {
    for (; value >= 0x80U; value >>= 7U) to_->push_back(static_cast<std::byte>(value | 0x80U));
    to_->push_back(static_cast<std::byte>(value));
}

void writer::varint(u32 field, u64 value) {
    raw_varint(u64{field} << 3U | wire_varint);
    raw_varint(value);
}

void writer::fixed32(u32 field, u32 value) {
    raw_varint(u64{field} << 3U | wire_32);
    append(*to_, value);
}

void writer::fixed64(u32 field, u64 value) {
    raw_varint(u64{field} << 3U | wire_64);
    append(*to_, value);
}

void writer::bytes(u32 field, std::span<const std::byte> value) {
    raw_varint(u64{field} << 3U | wire_bytes);
    raw_varint(value.size());
    to_->insert(to_->end(), value.begin(), value.end());
}

void writer::message(u32 field, const std::function<void(writer&)>& content) {
    buffer inner;
    writer w(inner);
    content(w);
    bytes(field, inner);
}

bool read(std::span<const std::byte> message, const std::function<void(const field&)>& each) {
    while (!message.empty()) {
        u64 key = 0, length = 0;
        field f;
        if (!take_varint(message, key)) return false;
        f.number = static_cast<u32>(key >> 3U);
        switch (key & 7U) {
            case wire_varint:
                if (!take_varint(message, f.value)) return false;
                break;
            case wire_64:
                if (!take_fixed<u64>(message, f.value)) return false;
                break;
            case wire_32:
                if (!take_fixed<u32>(message, f.value)) return false;
                break;
            case wire_bytes:
                if (!take_varint(message, length) || length > message.size()) return false;
                f.bytes = message.first(static_cast<std::size_t>(length));
                message = message.subspan(static_cast<std::size_t>(length));
                break;
            default:
                return false;
        }
        each(f);
    }
    return true;
}

}  // namespace carousel::stages::proto
