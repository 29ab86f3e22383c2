#pragma once
// Little-endian numbers, texts and maps in the encoding of MCAP; the format is described at
// https://mcap.dev/spec.

#include <cstring>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/errors.hpp"
#include "core/types.hpp"

namespace carousel::stages::mcap {

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

}  // namespace carousel::stages::mcap
