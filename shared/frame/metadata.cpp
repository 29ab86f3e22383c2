#include "frame/metadata.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/errors.hpp"
#include "shm/block_guard.hpp"

namespace carousel::ring {
namespace {

constexpr std::size_t head = 4;
constexpr std::size_t most_value = 0xFFFF;

// The sizes of the alternatives of metadata_value; 0: variable length.
constexpr std::size_t fixed_bytes[] = {1, 8, 8, 8, 0, 0};

bool is_key(std::string_view key) noexcept {
    return !key.empty() && key.size() <= max_metadata_key && std::all_of(key.begin(), key.end(), [](char c) {
        return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
               c == '.' || c == ':' || c == '/' || c == '-';
    });
}

/// Returns the length in bytes of the UTF-8 sequence at the beginning of a text; 0: the sequence is not
/// valid, or is a control character.
std::size_t utf8_char_bytes(std::string_view text) noexcept {
    const auto at = [&](std::size_t k) { return static_cast<u8>(text[k]); };
    const u8 first = at(0);
    if (first < 0x80) return first >= 0x20 && first != 0x7F ? 1 : 0;
    const std::size_t bytes = first >= 0xC2 && first < 0xE0   ? 2
                              : first >= 0xE0 && first < 0xF0 ? 3
                              : first >= 0xF0 && first < 0xF5 ? 4
                                                              : 0;
    if (bytes == 0 || text.size() < bytes) return 0;
    for (std::size_t k = 1; k < bytes; ++k)
        if ((at(k) & 0xC0U) != 0x80U) return 0;
    // Rejects overlong forms, surrogates, code points above U+10FFFF, and C1 control characters.
    if ((first == 0xE0 && at(1) < 0xA0) || (first == 0xED && at(1) >= 0xA0) ||
        (first == 0xF0 && at(1) < 0x90) || (first == 0xF4 && at(1) >= 0x90) ||
        (first == 0xC2 && at(1) < 0xA0))
        return 0;
    return bytes;
}

bool is_utf8_text(std::string_view text) noexcept {
    while (!text.empty()) {
        const std::size_t n = utf8_char_bytes(text);
        if (n == 0) return false;
        text.remove_prefix(n);
    }
    return true;
}

template <typename T>
T read(const std::byte* at) noexcept {
    T out;
    std::memcpy(&out, at, sizeof out);
    return out;
}

std::string_view as_text(std::span<const std::byte> bytes) noexcept {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Returns a value of that kind and length; empty if the bytes are not valid for that kind.
std::optional<metadata_value> value_of(u8 kind, std::span<const std::byte> bytes) noexcept {
    switch (kind) {
        case 1:
            if (bytes[0] > std::byte{1}) return std::nullopt;
            return bytes[0] != std::byte{0};
        case 2:
            return read<i64>(bytes.data());
        case 3:
            return read<u64>(bytes.data());
        case 4:
            return read<f64>(bytes.data());
        case 5:
            if (!is_utf8_text(as_text(bytes))) return std::nullopt;
            return as_text(bytes);
        default:
            return bytes;
    }
}

/// Returns the bytes of a value; `number` is the storage for the bytes of a number or a flag.
std::span<const std::byte> bytes_of(const metadata_value& value, std::byte (&number)[8]) noexcept {
    return std::visit(
        [&](const auto& v) -> std::span<const std::byte> {
            using type = std::decay_t<decltype(v)>;
            if constexpr (std::is_same_v<type, std::string_view>) {
                return std::as_bytes(std::span(v.data(), v.size()));
            } else if constexpr (std::is_same_v<type, std::span<const std::byte>>) {
                return v;
            } else if constexpr (std::is_same_v<type, bool>) {
                number[0] = std::byte{v ? u8{1} : u8{0}};
                return std::span(number).first(1);
            } else {
                static_assert(sizeof v == sizeof number);
                std::memcpy(number, &v, sizeof v);
                return number;
            }
        },
        value);
}

/// Returns the length of the entry at the beginning of these bytes, derived only from its length fields; 0:
/// it is not a valid entry.
std::size_t entry_bytes(std::span<const std::byte> left) noexcept {
    if (left.size() < head) return 0;
    const std::size_t kind = static_cast<u8>(left[0]), key = static_cast<u8>(left[1]),
                      value = read<u16>(left.data() + 2);
    if (kind == 0 || kind > std::variant_size_v<metadata_value> || key == 0 || key > max_metadata_key)
        return 0;
    if (fixed_bytes[kind - 1] != 0 && value != fixed_bytes[kind - 1]) return 0;
    return left.size() - head < key + value ? 0 : head + key + value;
}

struct entry_place {
    u32 at = 0, bytes = 0;  ///< bytes 0: there is no such entry, and the entries end at `at`
};
// Used only for bytes that this process has assembled itself, because their entries were checked when they
// were added.
entry_place find(std::span<const std::byte> in, std::string_view key) noexcept {
    u32 at = 0;
    while (at < in.size()) {
        const std::size_t bytes = entry_bytes(in.subspan(at));
        if (bytes == 0) break;
        const std::size_t length = static_cast<u8>(in[at + 1]);
        if (length == key.size() && std::memcmp(in.data() + at + head, key.data(), length) == 0)
            return {at, static_cast<u32>(bytes)};
        at += static_cast<u32>(bytes);
    }
    return {at, 0};
}

/// Returns how many of the bytes contain valid entries: everything after an invalid entry is dropped.
u32 whole_bytes(std::span<const std::byte> in) noexcept {
    metadata_reader all(in);
    metadata_entry e;
    u32 at = 0;
    while (all.next(e)) at += static_cast<u32>(entry_bytes(in.subspan(at)));
    return at;
}

}  // namespace

const char* kind_of(const metadata_value& value) noexcept {
    constexpr const char* names[] = {"bool", "i64", "u64", "f64", "text", "bytes"};
    return names[value.index()];
}

bool metadata_reader::next(metadata_entry& out) noexcept {
    if (left_.empty() || damaged_) return false;
    damaged_ = true;
    const std::size_t bytes = entry_bytes(left_);
    if (bytes == 0) return false;
    const std::size_t key = static_cast<u8>(left_[1]);
    out.key = as_text(left_.subspan(head, key));
    const auto found = value_of(static_cast<u8>(left_[0]), left_.subspan(head + key, bytes - head - key));
    if (!found || !is_key(out.key)) return false;
    out.value = *found;
    left_ = left_.subspan(bytes);
    damaged_ = false;
    return true;
}

std::span<const std::byte> metadata_of(const shm::frame_header& h) noexcept {
    return std::span(h.metadata).first(std::min(h.metadata_bytes, shm::max_metadata_bytes));
}

std::optional<metadata_value> find_metadata(std::span<const std::byte> bytes, std::string_view key) noexcept {
    metadata_reader all(bytes);
    metadata_entry e;
    while (all.next(e))
        if (e.key == key) return e.value;
    return std::nullopt;
}

metadata_change set_metadata(std::span<std::byte> room, u32& bytes, std::string_view key,
                             const metadata_value& value) noexcept {
    if (!is_key(key)) return metadata_change::bad_key;
    std::byte number[8];
    const std::span<const std::byte> from = bytes_of(value, number);
    if (from.size() > most_value) return metadata_change::no_room;
    if (const auto* text = std::get_if<std::string_view>(&value); text != nullptr && !is_utf8_text(*text))
        return metadata_change::bad_value;
    const u32 used = std::min<u32>(bytes, static_cast<u32>(room.size()));
    const entry_place old = find(room.first(used), key);
    const u32 kept = old.bytes != 0 ? used - old.bytes : old.at;
    if (kept + head + key.size() + from.size() > room.size()) return metadata_change::no_room;
    const shm::block_open open;  // opens the control block for writing, since `room` may be in a frame header
    if (old.bytes != 0)
        std::memmove(room.data() + old.at, room.data() + old.at + old.bytes, used - old.at - old.bytes);
    std::byte* const to = room.data() + kept;
    to[0] = std::byte{static_cast<u8>(value.index() + 1)};
    to[1] = std::byte{static_cast<u8>(key.size())};
    const u16 length = static_cast<u16>(from.size());
    std::memcpy(to + 2, &length, sizeof length);
    std::memcpy(to + head, key.data(), key.size());
    if (!from.empty()) std::memcpy(to + head + key.size(), from.data(), from.size());
    bytes = kept + static_cast<u32>(head + key.size() + from.size());
    return metadata_change::done;
}

bool erase_metadata(std::span<std::byte> room, u32& bytes, std::string_view key) noexcept {
    const u32 used = std::min<u32>(bytes, static_cast<u32>(room.size()));
    const entry_place old = find(room.first(used), key);
    if (old.bytes == 0) return false;
    const shm::block_open open;
    std::memmove(room.data() + old.at, room.data() + old.at + old.bytes, used - old.at - old.bytes);
    bytes = used - old.bytes;
    return true;
}

u32 merge_metadata(std::span<std::byte> room, u32& bytes, std::span<const std::byte> more) noexcept {
    const shm::block_open open;
    const u32 used = std::min<u32>(bytes, static_cast<u32>(room.size()));
    if (used == 0) {  // the common case: everything is copied at once
        const u32 whole = whole_bytes(more);
        bytes = std::min(whole, static_cast<u32>(room.size()));
        if (bytes != 0) std::memcpy(room.data(), more.data(), bytes);
        return whole < more.size() ? 1 : 0;
    }
    u32 left_out = 0;
    metadata_reader all(more);
    metadata_entry e;
    while (all.next(e))
        if (find(room.first(bytes), e.key).bytes == 0 &&
            set_metadata(room, bytes, e.key, e.value) != metadata_change::done)
            ++left_out;
    if (all.damaged()) ++left_out;
    return left_out;
}

std::string line_of(std::span<const std::byte> bytes) {
    std::string out;
    metadata_reader all(bytes);
    for (metadata_entry e; all.next(e);)
        out += fmt::format("{}{} {}", out.empty() ? "" : ", ", e.key, text_of(e.value));
    if (all.damaged()) out += out.empty() ? "damaged" : ", then damaged";
    return out;
}

std::string text_of(const metadata_value& value) {
    return std::visit(
        [](const auto& v) -> std::string {
            using type = std::decay_t<decltype(v)>;
            if constexpr (std::is_same_v<type, std::span<const std::byte>>)
                return fmt::format("{} bytes", v.size());
            else if constexpr (std::is_same_v<type, std::string_view>)
                return fmt::format("\"{}\"", v);
            else
                return fmt::format("{}", v);
        },
        value);
}

u64 used_extent(const plane& p, std::size_t index, u32 d, const shm::used_extents& used) noexcept {
    if (!is_used_in_part(used, index) || d >= max_rank) return p.shape[d];
    return std::min(used.of[index][d], p.shape[d]);
}

plane used_plane(const frame_format& f, std::size_t index, const shm::used_extents& used) {
    plane out = f.planes[index];
    if (!is_used_in_part(used, index)) return out;
    if (out.strides.empty()) {
        out.strides.assign(out.shape.size(), element_bytes(out.type));
        for (std::size_t d = out.shape.size(); d-- > 1;) out.strides[d - 1] = out.strides[d] * out.shape[d];
    }
    for (u32 d = 0; d < out.shape.size(); ++d) out.shape[d] = used_extent(f.planes[index], index, d, used);
    return out;
}

void set_used(shm::used_extents& used, const frame_format& f, std::string_view name,
              std::span<const u64> extents) {
    const plane* p = f.find(name);
    if (p == nullptr) throw config_error(fmt::format("no plane \"{}\" in {}", name, f.describe()));
    const auto index = static_cast<std::size_t>(p - f.planes.data());
    const auto refuse = [&](const std::string& why) {
        throw config_error(fmt::format("the plane \"{}\" can't be used as ({}): {}, in {}", name,
                                       fmt::join(extents, ", "), why, f.describe()));
    };
    if (index >= shm::max_used_planes)
        refuse(
            fmt::format("only the first {} planes of a payload may be used in part", shm::max_used_planes));
    if (extents.size() > p->shape.size()) refuse(fmt::format("it has {} dimensions", p->shape.size()));
    for (std::size_t d = 0; d < extents.size(); ++d)
        if (extents[d] > p->shape[d]) refuse("it is smaller");
    const shm::block_open open;  // opens the control block for writing, since `used` may be in a frame header
    for (std::size_t d = 0; d < p->shape.size(); ++d)
        used.of[index][d] = d < extents.size() ? extents[d] : p->shape[d];
    used.planes |= 1U << index;
}

std::string describe_used(const frame_format& f, const shm::used_extents& used) {
    std::string out;
    for (std::size_t k = 0; k < f.planes.size(); ++k) {
        if (!is_used_in_part(used, k)) continue;
        out +=
            fmt::format("{}{} {} of {}", out.empty() ? "" : ", ", f.planes[k].name,
                        fmt::join(used_plane(f, k, used).shape, " x "), fmt::join(f.planes[k].shape, " x "));
    }
    return out;
}

void copy_facts(const shm::frame_header& h, u32 parameter_bytes, frame_facts& to) {
    to.meta() = h.meta;
    to.ring_sequence = h.ring_sequence.load(std::memory_order_relaxed);
    to.metadata_omitted = h.metadata_omitted;
    to.parameters.assign(h.parameters, h.parameters + std::min(parameter_bytes, shm::max_parameter_bytes));
    to.set(metadata_of(h), h.used.planes != 0 ? &h.used : nullptr);
    to.sampled_frames.assign(h.sampled_sequence,
                             h.sampled_sequence + std::min(h.sampled_inputs, shm::max_sampled_inputs));
}

}  // namespace carousel::ring
