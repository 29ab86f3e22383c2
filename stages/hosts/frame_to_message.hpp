#pragma once
// Conversion of the data that accompanies a frame's payload, for the transfer over a link.

#include <string_view>

#include <carousel/stage.hpp>
#include "stages/hosts/link/message.hpp"

namespace carousel::hosts {

inline constexpr std::string_view payload_hash_name = "carousel.blocks4k.v1 of a payload";

/// Sets all fields except the bytes, their hash and the used extents.
[[nodiscard]] frame_message message_of(frame& f);
[[nodiscard]] used_planes used_of(const shm::used_extents& from);
[[nodiscard]] shm::used_extents extents_of(const used_planes& from);

}  // namespace carousel::hosts
