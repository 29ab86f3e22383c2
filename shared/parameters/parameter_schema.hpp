#pragma once
// The parameters of a pipeline that may be set while it runs: a plain struct defined by the application, of
// at most max_parameter_bytes, whose fields are described here by name. The library passes the bytes on
// without interpreting them; viewer, dashboard and `carousel set` build their controls from the description.
// Every stage that reads parameters names the same schema; it is checked like a frame format.
//
// A type T of parameters is trivially copyable and has
//   static constexpr const char* type    its name, e.g. "carousel.scene": two types of one name are one type
//   static parameter_schema schema()     its fields

#include <concepts>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/types.hpp"
#include "shm/frame_meta.hpp"

namespace carousel::ring {

enum class parameter_kind : u8 {
    number,
    integer,
    flag,
    choice
};  ///< stored as f32, i32, u32 (0 or 1) and u32 (the index of the choice): 4 bytes per element
[[nodiscard]] const char* name_of(parameter_kind k) noexcept;

struct parameter {
    std::string name;  ///< letters, digits and _: the key in pipeline files and in `carousel set`
    parameter_kind kind = parameter_kind::number;
    u32 offset = 0;                     ///< bytes, a multiple of 4
    u32 count = 1;                      ///< elements, at most 4: 3 for a point
    std::vector<f64> initial = {0};     ///< `count` values; the value of a choice is the choice's index
    f64 low = 0, high = 1;              ///< the range of each element
    f64 usual_low = 0, usual_high = 0;  ///< ends of a control's range; if they are equal, the control uses
                                        ///< low and high
    f64 step = 0;                       ///< step of a control; 0: none
    std::string label = {};             ///< display name; "": `name` is displayed
    std::string unit = {};              ///< "rad", "x"; a number in "rad" is shown in degrees
    /// The kind of control: "camera.eye", "camera.target", "camera.up", "camera.fov" (together: an orbit by
    /// mouse), "direction" (a unit vector; values are normalised when they are set), "hidden" (no control;
    /// available in files and in `carousel set`). "": a plain control.
    std::string role = {};
    /// name of another field, whose value must be larger than the value of this field
    std::string below = {};
    std::vector<std::string> choices = {};
    bool operator==(const parameter&) const = default;
};

struct parameter_schema {
    std::string type;  ///< "": no parameters
    u32 bytes = 0;     ///< sizeof the struct
    std::vector<parameter> fields;
    bool operator==(const parameter_schema&) const = default;
    [[nodiscard]] explicit operator bool() const noexcept { return !type.empty(); }

    /// Throws config_error for an invalid schema: no name, fields that overlap or lie outside the struct,
    /// values out of their range.
    void check() const;
    [[nodiscard]] const parameter* find(std::string_view name) const noexcept;
    [[nodiscard]] std::vector<std::string> names() const;
    [[nodiscard]] std::string describe() const;  ///< Returns "carousel.scene (112 bytes: eye, target, ...)"
    [[nodiscard]] nlohmann::json to_json() const;
    [[nodiscard]] static parameter_schema from_json(const nlohmann::json& j);  ///< throws config_error

    [[nodiscard]] std::vector<std::byte> initial_values() const;
    /// Sets one field: a number, true or false, a choice's name, or a list for count > 1. Throws config_error
    /// without writing anything: "exposure = 5000: expected a number from 0 to 1000"; for an unknown name the
    /// message contains "did you mean".
    void set(std::span<std::byte> values, std::string_view name, const nlohmann::json& value) const;
    /// Checks the conditions that involve two fields (parameter::below). Throws config_error.
    void check_values(std::span<const std::byte> values) const;
    /// All fields by name, in the form that set() takes; with `only_where_other`, only the fields whose
    /// values differ from those in `only_where_other`.
    [[nodiscard]] nlohmann::json values_json(std::span<const std::byte> values,
                                             std::span<const std::byte> only_where_other = {}) const;
    /// Returns true if set() can have produced these bytes; bytes that a faulty process has overwritten are
    /// rejected.
    [[nodiscard]] bool is_possible(std::span<const std::byte> values) const noexcept;
    /// Returns element `index` of a field as a number.
    [[nodiscard]] static f64 element_of(const parameter& p, std::span<const std::byte> values,
                                        u32 index = 0) noexcept;
};

template <typename T>
concept frame_parameters = std::is_trivially_copyable_v<T> &&
                           sizeof(T) <= shm::max_parameter_bytes&& requires {
    { T::type } -> std::convertible_to<std::string_view>;
    { T::schema() } -> std::same_as<parameter_schema>;
};

}  // namespace carousel::ring
