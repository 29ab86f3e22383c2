#pragma once
// The part of Protocol Buffers' wire format that a frame's message needs: fields of numbers, texts, bytes and
// messages.

#include <bit>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "core/types.hpp"

namespace carousel::stages::proto {

using buffer = std::vector<std::byte>;

class writer {
public:
    explicit writer(buffer& to) noexcept : to_(&to) {}
    void varint(u32 field, u64 value);
    void fixed32(u32 field, u32 value);
    void fixed64(u32 field, u64 value);
    void number(u32 field, f64 value) { fixed64(field, std::bit_cast<u64>(value)); }
    void bytes(u32 field, std::span<const std::byte> value);
    void text(u32 field, std::string_view value) { bytes(field, std::as_bytes(std::span(value))); }
    void message(u32 field, const std::function<void(writer&)>& content);

private:
    void raw_varint(u64 value);
    buffer* to_;
};

struct field {
    u32 number = 0;
    u64 value = 0;                          ///< the bits of a number
    std::span<const std::byte> bytes = {};  ///< of all other types
    [[nodiscard]] f64 as_f64() const noexcept { return std::bit_cast<f64>(value); }
    [[nodiscard]] std::string_view as_text() const noexcept {
        return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    }
};

/// Calls `each` for every field of a message, in order. Returns false if the bytes are not a message.
[[nodiscard]] bool read(std::span<const std::byte> message, const std::function<void(const field&)>& each);

}  // namespace carousel::stages::proto
