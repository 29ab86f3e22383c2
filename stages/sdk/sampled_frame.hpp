#pragma once
// The newest frame of a sampled input (the key `sampled` of a pipeline file), in the form that a stage's own
// code gets: a copy that the runner made before it began the stage's frame. Empty until the input has a
// frame.

#include <span>
#include <string_view>

#include "core/errors.hpp"
#include "frame/metadata.hpp"
#include "stages/sdk/metadata.hpp"
#include "stages/sdk/payload.hpp"

namespace carousel {

/// One frame of a sampled input; see the beginning of this file. It is valid as long as the stage's own frame
/// is.
class sampled_frame {
public:
    /// True if there is no frame.
    sampled_frame() = default;
    sampled_frame(const input_payload& payload, const ring::frame_facts& what) noexcept
        : payload_(payload), what_(&what) {}

    [[nodiscard]] explicit operator bool() const noexcept { return what_ != nullptr; }
    /// Its planes, like those of an input: in the memory of the stage's device, valid until the stage's frame
    /// is complete. This function and all following ones throw config_error if the frame is empty.
    [[nodiscard]] const input_payload& payload() const {
        (void)there();
        return payload_;
    }
    /// Returns a plane, like payload::plane(); also throws config_error if there is no plane of that name or
    /// type.
    template <typename T>
    [[nodiscard]] plane_view<T> plane(std::string_view name) const {
        return payload().template plane<T>(name);
    }
    [[nodiscard]] std::span<const std::byte> bytes(std::string_view name) const {
        return payload().bytes(name);
    }
    /// The properties of the sampled frame; they mean the same as in class frame, with times in s and ns.
    [[nodiscard]] const shm::frame_meta& meta() const { return there(); }
    [[nodiscard]] u64 frame_number() const { return there().frame_number; }
    [[nodiscard]] u64 ring_sequence() const { return there().ring_sequence; }
    [[nodiscard]] f64 time_s() const { return there().time_s; }
    [[nodiscard]] u64 born_ns() const { return there().born_ns; }
    [[nodiscard]] u64 capture_ns() const { return there().capture_ns; }
    [[nodiscard]] shm::capture_clock capture_clock() const { return there().clock; }
    [[nodiscard]] frame_metadata metadata() const { return frame_metadata(there().metadata); }
    /// The values of the pipeline's parameters with which the sampled frame was made.
    [[nodiscard]] u64 parameter_number() const { return there().parameter_number; }
    [[nodiscard]] std::span<const std::byte> parameter_bytes() const { return there().parameters; }

private:
    [[nodiscard]] const ring::frame_facts& there() const {
        if (what_ != nullptr) return *what_;
        throw config_error(
            "a sampled input has no frame yet, but its planes are accessed: check `if (const auto side = "
            "f.sampled(...))` first");
    }

    input_payload payload_;
    const ring::frame_facts* what_ = nullptr;
};

}  // namespace carousel
