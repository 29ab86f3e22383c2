#pragma once
// The elements of a glTF accessor, within their buffer. Internal to the glTF reader.

#include <initializer_list>
#include <string>
#include <vector>

#include "stages/assets/gltf_document.hpp"

namespace carousel::stages {

class gltf_accessor {
public:
    /// Opens the accessor that `from`.`key` names. Refuses types other than `types` ("SCALAR", "VEC3" ...)
    /// and elements outside the buffer view.
    gltf_accessor(gltf_document& document, const gltf_value& from, const char* key,
                  std::initializer_list<std::string_view> types);

    [[nodiscard]] u64 count() const noexcept { return count_; }
    [[nodiscard]] u32 components() const noexcept { return components_; }
    /// Component `k` < components() of element `i` < count(); a normalised integer is returned as a number in
    /// -1..1 or 0..1. May be NaN.
    [[nodiscard]] f64 value(u64 i, u32 k) const;
    /// All components of all elements. Refuses numbers that are not finite. Charges the document.
    [[nodiscard]] std::vector<f32> values() const;
    /// Element `i` < count() of a list of indices. Requires a call of require_indices() first.
    [[nodiscard]] u32 index(u64 i) const;
    /// Throws settings_error unless the elements are u8, u16 or u32.
    void require_indices(const gltf_value& from) const;

private:
    enum class component : u64 { i8 = 5120, u8 = 5121, i16 = 5122, u16 = 5123, u32 = 5125, f32 = 5126 };

    void open_view(gltf_document& document, const gltf_value& accessor);
    /// Copies the elements and replaces those that the sparse part lists.
    void apply_sparse(gltf_document& document, const gltf_value& accessor, const gltf_value& sparse);

    gltf_document* document_;
    std::vector<std::byte> own_;  ///< elements of a sparse accessor
    std::span<const std::byte> bytes_;
    std::string place_, key_;
    component type_ = component::f32;
    u64 count_ = 0, stride_ = 0;
    u32 components_ = 1, size_ = 4;  ///< bytes per component
    bool normalized_ = false;
};

}  // namespace carousel::stages
