#include "stages/sdk/metadata.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "core/errors.hpp"
#include "shm/block_guard.hpp"

namespace carousel {

std::span<const std::byte> frame_metadata::bytes() const noexcept {
    return used_ == nullptr ? bytes_ : bytes_.first(std::min<std::size_t>(*used_, bytes_.size()));
}

std::vector<ring::metadata_entry> frame_metadata::entries() const {
    std::vector<ring::metadata_entry> all;
    ring::metadata_reader reader(bytes());
    for (ring::metadata_entry e; reader.next(e);) all.push_back(e);
    return all;
}

void frame_metadata::put(std::string_view key, const ring::metadata_value& value) {
    if (used_ == nullptr)
        throw std::logic_error("a frame's metadata can only be set in process() of a stage with an output");
    switch (ring::set_metadata(room_, *used_, key, value)) {
        case ring::metadata_change::done:
            return;
        case ring::metadata_change::bad_key:
            throw config_error(fmt::format(
                "metadata \"{}\": expected a key of 1 to {} characters from A-Z a-z 0-9 _ . : / -", key,
                ring::max_metadata_key));
        case ring::metadata_change::bad_value:
            throw config_error(
                fmt::format("metadata \"{}\": expected a UTF-8 text without control characters", key));
        case ring::metadata_change::no_room:
            throw config_error(
                fmt::format("metadata \"{}\": {} of the frame's {} bytes are used, and this entry does not "
                            "fit: store less, or use a plane",
                            key, bytes().size(), room_.size()));
    }
}

void frame_metadata::assign(std::span<const std::byte> bytes) {
    ring::metadata_reader all(bytes);
    if (used_ != nullptr) {
        const shm::block_open open;
        *used_ = 0;
    }
    for (ring::metadata_entry e; all.next(e);) put(e.key, e.value);
}

bool frame_metadata::erase(std::string_view key) {
    if (used_ == nullptr)
        throw std::logic_error(
            "a frame's metadata can only be changed in process() of a stage with an output");
    return ring::erase_metadata(room_, *used_, key);
}

void frame_metadata::refuse_kind(std::string_view key, const ring::metadata_value& is, const char* wanted) {
    throw config_error(fmt::format("metadata \"{}\" is {} ({}), but was requested as {}", key,
                                   ring::kind_of(is), ring::text_of(is), wanted));
}

}  // namespace carousel
