#pragma once
// Small named values of a frame, which are passed with it to every stage downstream.
//
//   f.metadata().set("exposure_ms", 3.5);                  // in process(), of a stage with an output
//   f.metadata().get<f64>("exposure_ms").value_or(0);      // in every stage downstream
//
// A view of the frame's own bytes: valid as long as the frame is. frame/metadata.hpp defines the encoding,
// the rule for joins and the limit: 1,024 bytes per frame; an entry takes 4 bytes plus its key and value.

#include <concepts>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/types.hpp"
#include "frame/metadata.hpp"

namespace carousel {

/// The types of an entry: bool, integers, floating-point numbers, text, bytes.
template <typename T>
concept metadata_type =
    std::is_arithmetic_v<T> || std::same_as<T, std::string> || std::same_as<T, std::vector<std::byte>>;

/// The metadata of one frame. Not synchronised: while entries are being set, only one thread may use the
/// object.
class frame_metadata {
public:
    /// Creates an empty object in which no entry can be set.
    frame_metadata() = default;
    explicit frame_metadata(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}
    /// The first `used` bytes of `room` contain the entries; both `room` and `used` must outlive this object.
    frame_metadata(std::span<std::byte> room, u32& used) noexcept : bytes_(room), room_(room), used_(&used) {}

    /// Returns the entry of that key, or nullopt if there is none. A number is returned as any numeric type
    /// that can hold its value. Throws config_error if the entry is of another kind.
    template <metadata_type T>
    [[nodiscard]] std::optional<T> get(std::string_view key) const;
    /// Adds an entry, or replaces the entry of that key. Throws config_error if the key has characters other
    /// than A-Z a-z 0-9 _ . : / - or is longer than 63, if a text is not UTF-8 or has control characters, or
    /// if there is no room; throws std::logic_error outside process() of a stage with an output. If the
    /// function throws, nothing is changed.
    template <metadata_type T>
    void set(std::string_view key, const T& value);
    void set(std::string_view key, const char* text) { put(key, std::string_view(text)); }
    void set(std::string_view key, std::string_view text) { put(key, text); }
    void set(std::string_view key, std::span<const std::byte> bytes) { put(key, bytes); }
    /// Replaces all entries by those encoded in `bytes`, in the format of bytes(). Throws as set() does.
    void assign(std::span<const std::byte> bytes);
    /// False: there was none.
    bool erase(std::string_view key);

    [[nodiscard]] bool empty() const noexcept { return bytes().empty(); }
    /// The encoded entries, for assign() or another process.
    [[nodiscard]] std::span<const std::byte> bytes() const noexcept;
    /// All entries in order, as views into the frame's bytes.
    [[nodiscard]] std::vector<ring::metadata_entry> entries() const;

private:
    void put(std::string_view key, const ring::metadata_value& value);
    [[noreturn]] static void refuse_kind(std::string_view key, const ring::metadata_value& is,
                                         const char* wanted);

    std::span<const std::byte> bytes_;
    std::span<std::byte> room_;
    u32* used_ = nullptr;
};

namespace detail {
template <metadata_type T>
[[nodiscard]] constexpr const char* metadata_name() noexcept {
    if constexpr (std::same_as<T, bool>)
        return "bool";
    else if constexpr (std::floating_point<T>)
        return "a number";
    else if constexpr (std::integral<T>)
        return "a whole number of this size";
    else if constexpr (std::same_as<T, std::string>)
        return "text";
    else
        return "bytes";
}

/// Returns the value as a T, or nullopt if it is not representable.
template <metadata_type T>
[[nodiscard]] std::optional<T> metadata_as(const ring::metadata_value& value) {
    return std::visit(
        [](const auto& v) -> std::optional<T> {
            using kind = std::decay_t<decltype(v)>;
            if constexpr (std::same_as<T, std::string>) {
                if constexpr (std::same_as<kind, std::string_view>) return std::string(v);
            } else if constexpr (std::same_as<T, std::vector<std::byte>>) {
                if constexpr (std::same_as<kind, std::span<const std::byte>>)
                    return std::vector<std::byte>(v.begin(), v.end());
            } else if constexpr (std::same_as<T, bool> || std::same_as<kind, bool>) {
                if constexpr (std::same_as<T, kind>) return v;
            } else if constexpr (std::floating_point<T>) {
                if constexpr (std::is_arithmetic_v<kind>) return static_cast<T>(v);
            } else if constexpr (std::integral<kind>) {
                if (std::in_range<T>(v)) return static_cast<T>(v);
            }
            return std::nullopt;
        },
        value);
}
}  // namespace detail

template <metadata_type T>
std::optional<T> frame_metadata::get(std::string_view key) const {
    const auto found = ring::find_metadata(bytes(), key);
    if (!found) return std::nullopt;
    std::optional<T> out = detail::metadata_as<T>(*found);
    if (!out) refuse_kind(key, *found, detail::metadata_name<T>());
    return out;
}

template <metadata_type T>
void frame_metadata::set(std::string_view key, const T& value) {
    if constexpr (std::same_as<T, bool>)
        put(key, value);
    else if constexpr (std::floating_point<T>)
        put(key, static_cast<f64>(value));
    else if constexpr (std::signed_integral<T>)
        put(key, static_cast<i64>(value));
    else if constexpr (std::integral<T>)
        put(key, static_cast<u64>(value));
    else if constexpr (std::same_as<T, std::string>)
        put(key, std::string_view(value));
    else
        put(key, std::span<const std::byte>(value));
}

}  // namespace carousel
