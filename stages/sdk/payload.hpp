#pragma once
// Access to the planes of a payload by name: the caller names the element type, which is checked against the
// format, and gets the plane with its shape. A plane_view is a plain value: it may be passed to a CUDA kernel
// or captured by a task.

#include <initializer_list>
#include <span>
#include <string_view>
#include <type_traits>

#include "core/host_device.hpp"
#include "core/types.hpp"
#include "frame/frame_format.hpp"
#include "frame/metadata.hpp"
#include "stages/sdk/configuration.hpp"

namespace carousel {

/// The element type that corresponds to a C++ type. Users may specialise the template for further types (for
/// example CUDA's __half for f16_, __nv_bfloat16 for bf16_).
template <typename T>
struct element_of;
template <>
struct element_of<u8> : std::integral_constant<ring::element, ring::element::u8_> {};
template <>
struct element_of<u16> : std::integral_constant<ring::element, ring::element::u16_> {};
template <>
struct element_of<u32> : std::integral_constant<ring::element, ring::element::u32_> {};
template <>
struct element_of<u64> : std::integral_constant<ring::element, ring::element::u64_> {};
template <>
struct element_of<i8> : std::integral_constant<ring::element, ring::element::i8_> {};
template <>
struct element_of<i16> : std::integral_constant<ring::element, ring::element::i16_> {};
template <>
struct element_of<i64> : std::integral_constant<ring::element, ring::element::i64_> {};
template <>
struct element_of<bool> : std::integral_constant<ring::element, ring::element::bool_> {};
template <>
struct element_of<i32> : std::integral_constant<ring::element, ring::element::i32_> {};
template <>
struct element_of<f32> : std::integral_constant<ring::element, ring::element::f32_> {};
template <>
struct element_of<f64> : std::integral_constant<ring::element, ring::element::f64_> {};

/// A plane's elements with their shape. Dimension 0 is the slowest. The memory is on the stage's device, so
/// on a GPU only kernels and copies may access it. Valid until the frame's work is complete.
template <typename T>
class plane_view {
public:
    plane_view() = default;
    plane_view(T* data, const ring::plane& of) noexcept
        : data_(data), rank_(static_cast<u32>(of.shape.size())) {
        u64 dense = sizeof(T);
        for (u32 d = rank_; d-- > 0;) {
            extent_[d] = of.shape[d];
            stride_[d] = of.strides.empty() ? dense : of.strides[d];
            dense_ = dense_ && stride_[d] == dense;
            dense *= extent_[d];
        }
    }

    /// Returns the view limited to `extents` elements per dimension.
    [[nodiscard]] plane_view narrowed(const u64 (&extents)[ring::max_rank]) const noexcept {
        plane_view out = *this;
        u64 dense = sizeof(T);
        out.dense_ = true;
        for (u32 d = rank_; d-- > 0;) {
            out.extent_[d] = extents[d] < extent_[d] ? extents[d] : extent_[d];
            out.dense_ = out.dense_ && (stride_[d] == dense || out.extent_[d] <= 1);
            dense *= out.extent_[d];
        }
        return out;
    }

    /// The first element: a pointer of the stage's device.
    [[nodiscard]] CAROUSEL_HD T* data() const noexcept { return data_; }
    [[nodiscard]] CAROUSEL_HD u32 rank() const noexcept { return rank_; }
    /// Number of elements along a dimension; 1 for a dimension that the plane does not have.
    [[nodiscard]] CAROUSEL_HD u64 extent(u32 dimension) const noexcept { return extent_[dimension]; }
    /// Distance in bytes between neighbouring elements along a dimension.
    [[nodiscard]] CAROUSEL_HD u64 stride(u32 dimension) const noexcept { return stride_[dimension]; }
    /// Total number of elements.
    [[nodiscard]] CAROUSEL_HD u64 size() const noexcept {
        return extent_[0] * extent_[1] * extent_[2] * extent_[3];
    }
    /// True if the elements are contiguous: data()[k] is element k.
    [[nodiscard]] CAROUSEL_HD bool is_dense() const noexcept { return dense_; }

    /// Returns the element at the given indices, one index per dimension, slowest dimension first. The
    /// indices are not checked.
    template <typename... Index>
    [[nodiscard]] CAROUSEL_HD T& operator()(Index... index) const noexcept {
        static_assert(sizeof...(Index) >= 1 && sizeof...(Index) <= ring::max_rank,
                      "pass one index per dimension");
        u64 at = 0;
        u32 d = 0;
        ((at += static_cast<u64>(index) * stride_[d++]), ...);
        using byte = std::conditional_t<std::is_const_v<T>, const unsigned char, unsigned char>;
        return *reinterpret_cast<T*>(reinterpret_cast<byte*>(data_) + at);
    }

private:
    T* data_ = nullptr;
    u64 extent_[ring::max_rank] = {1, 1, 1, 1};
    u64 stride_[ring::max_rank] = {};
    u32 rank_ = 0;
    bool dense_ = true;
};

namespace detail {
/// Returns the plane of that name and element type. Throws config_error if there is no such plane (with a
/// suggestion) or its element type differs.
[[nodiscard]] const ring::plane& find_plane(const ring::frame_format& in, std::string_view name,
                                            const ring::element* type);
/// Returns the plane of that name, which holds at least one record of `bytes` bytes. Throws config_error.
[[nodiscard]] const ring::plane& find_records(const ring::frame_format& in, std::string_view name, u64 bytes);
void set_used(shm::used_extents* used, const ring::frame_format& in, std::string_view name,
              std::initializer_list<u64> elements);
}  // namespace detail

/// A mapped slot: a frame's planes, for this stage's device.
template <typename Byte>
class payload {
public:
    using extents = std::conditional_t<std::is_const_v<Byte>, const shm::used_extents, shm::used_extents>;

    payload() = default;
    /// `used`: the used extents of the planes; null: all planes are used as a whole.
    payload(Byte* slot, const ring::frame_format* format, extents* used = nullptr) noexcept
        : slot_(slot), format_(format), used_(used) {}
    /// Converts an output payload to a read-only one.
    template <typename Other>
    requires(std::is_const_v<Byte>&& std::is_same_v<const Other, Byte>) payload(const payload<Other>& other)
    noexcept
        : slot_(other.slot()), format_(other ? &other.format() : nullptr), used_(other.used()) {}  // NOLINT

    [[nodiscard]] explicit operator bool() const noexcept { return slot_ != nullptr; }
    [[nodiscard]] const ring::frame_format& format() const noexcept { return *format_; }
    /// The start of the slot; frame/frame_format.hpp describes the planes' offsets from it.
    [[nodiscard]] Byte* slot() const noexcept { return slot_; }
    [[nodiscard]] extents* used() const noexcept { return used_; }

    /// In process(), for an output: declares how much of a plane this frame uses. `elements` contains the
    /// numbers of elements along the first dimensions, each at most the declared number; along the other
    /// dimensions all elements are used. The other elements may contain any data, because they are never
    /// read, hashed or recorded. Without this call a plane is used as a whole. Throws config_error if the
    /// plane does not exist, if it is not one of the first eight, or if `elements` exceeds its extents;
    /// throws std::logic_error for an input, or outside process().
    void set_used(std::string_view name, std::initializer_list<u64> elements) const {
        static_assert(!std::is_const_v<Byte>, "inputs are read-only");
        detail::set_used(used_, *format_, name, elements);
    }

    /// Returns the plane of that name: for an input the used part, for an output the whole plane. Throws
    /// config_error if there is no such plane or its element type differs.
    template <typename T>
    [[nodiscard]] plane_view<T> plane(std::string_view name) const {
        static_assert(std::is_const_v<T> || !std::is_const_v<Byte>,
                      "inputs are read-only: use plane<const T>");
        constexpr ring::element type = element_of<std::remove_const_t<T>>::value;
        const ring::plane& p = detail::find_plane(*format_, name, &type);
        const plane_view<T> all(reinterpret_cast<T*>(slot_ + p.offset), p);
        const auto index = static_cast<std::size_t>(&p - format_->planes.data());
        if constexpr (std::is_const_v<Byte>)
            if (used_ != nullptr && ring::is_used_in_part(*used_, index))
                return all.narrowed(used_->of[index]);
        return all;
    }
    /// Returns a plane as an array of user-defined records, regardless of its element type. Throws
    /// config_error if there is no such plane, or if it is smaller than one record.
    template <typename T>
    [[nodiscard]] T* records(std::string_view name) const {
        static_assert(
            std::is_trivially_copyable_v<T>,
            "use a trivially copyable type: records are copied between processes and devices as bytes");
        static_assert(std::is_const_v<T> || !std::is_const_v<Byte>,
                      "inputs are read-only: use records<const T>");
        return reinterpret_cast<T*>(slot_ + detail::find_records(*format_, name, sizeof(T)).offset);
    }
    /// Returns the bytes of a plane. For a plane of an input, returns the bytes up to its last used element.
    /// Throws config_error if there is no such plane.
    [[nodiscard]] std::span<Byte> bytes(std::string_view name) const {
        const ring::plane& p = detail::find_plane(*format_, name, nullptr);
        return {slot_ + p.offset, std::is_const_v<Byte> ? in_use(name).bytes() : p.bytes()};
    }
    /// Returns the plane with its used extents as its shape.
    [[nodiscard]] ring::plane in_use(std::string_view name) const {
        const ring::plane& p = detail::find_plane(*format_, name, nullptr);
        if (used_ == nullptr) return p;
        return ring::used_plane(*format_, static_cast<std::size_t>(&p - format_->planes.data()), *used_);
    }

private:
    Byte* slot_ = nullptr;
    const ring::frame_format* format_ = nullptr;
    extents* used_ = nullptr;
};

using input_payload = payload<const std::byte>;
using output_payload = payload<std::byte>;

// The payload formats that Carousel's own stages exchange. A user's stage most often needs one of them, the
// image.

/// An image: plane 0 "color", u8[height][width][4], R G B A, sRGB, top row first, dense. 0 accepts any size
/// (for require_image).
[[nodiscard]] frame_format image_format(u32 width, u32 height);

/// The size of an image payload in pixels.
struct image_size {
    u32 width = 0, height = 0;
    [[nodiscard]] u64 bytes() const noexcept { return u64{width} * height * 4; }
};

/// Checks that the stage has exactly one input and that it is an image; returns its size. Throws config_error
/// with the required and the actual format.
[[nodiscard]] image_size require_image(const configuration& with);

/// Returns the only input of a stage that takes exactly one. Throws config_error; `what` (e.g. "a picture")
/// is part of the error's message.
[[nodiscard]] const input_description& require_one_input(const configuration& with, std::string_view what);

/// Throws config_error if a stage that generates its frames has inputs.
void require_no_inputs(const configuration& with);

}  // namespace carousel
