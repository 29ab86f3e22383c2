#pragma once
// A glTF file: its JSON, its buffers, the URIs that name the buffers, and the transforms of its nodes. Every
// read is checked. Internal to the glTF reader.

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.hpp"
#include "core/types.hpp"
#include "stages/assets/affine.hpp"
#include "stages/assets/texture.hpp"
#include "stages/sdk/configuration.hpp"

namespace carousel::stages {

// URIs in glTF files: data: URIs and percent encoding (RFC 2397, 3986, 4648). Internal to the glTF reader.

[[nodiscard]] bool is_data_uri(std::string_view uri) noexcept;
/// If the data is not complete base64, returns nothing.
[[nodiscard]] std::optional<std::vector<std::byte>> decode_data_uri(std::string_view uri);
/// Converts "a%20b" to "a b"; a percent sign without two hexadecimal digits is kept.
[[nodiscard]] std::string decode_percent(std::string_view uri);

/// An object or array of the file, with its path for messages: "m.gltf: accessors[3]".
class gltf_value {
public:
    gltf_value(const nlohmann::json& json, std::string place) : json_(&json), place_(std::move(place)) {}

    /// The extension `name` of this object, if the object has it.
    [[nodiscard]] std::optional<gltf_value> extension(const char* name) const;
    [[nodiscard]] const std::string& place() const noexcept { return place_; }
    /// Throws settings_error: "PLACE: WHY".
    [[noreturn]] void refuse(std::string_view why) const;

    // Each of these functions refuses values of another type or out of range.
    [[nodiscard]] bool has(const char* key) const { return get(key) != nullptr; }
    [[nodiscard]] bool is_number(const char* key) const;
    [[nodiscard]] std::optional<gltf_value> find(const char* key) const;
    [[nodiscard]] gltf_value member(const char* key) const;  ///< refuses a missing key
    [[nodiscard]] u64 integer(const char* key, u64 low, u64 high) const;
    [[nodiscard]] u64 integer_or(const char* key, u64 otherwise, u64 low, u64 high) const;
    [[nodiscard]] std::string text_or(const char* key, const std::string& otherwise) const;
    [[nodiscard]] bool flag_or(const char* key, bool otherwise) const;
    /// A finite number.
    [[nodiscard]] f64 number_or(const char* key, f64 otherwise) const;
    /// Reads exactly out.size() finite numbers. Returns false if the key is absent.
    bool numbers(const char* key, std::span<f64> out) const;
    /// Reads a list of at most `most` finite numbers; an empty list if the key is absent.
    [[nodiscard]] std::vector<f32> number_list(const char* key, u64 most) const;
    /// Number of elements of an array of this object; 0 if the key is absent.
    [[nodiscard]] u64 count(const char* key) const;
    /// Element `i` < count(key) of the array `key`. The element must be an object.
    [[nodiscard]] gltf_value at(const char* key, u64 i) const;
    /// Element `i` < count(key) of the array `key`, which must be an array of integers.
    [[nodiscard]] u64 integer_at(const char* key, u64 i, u64 high) const;
    [[nodiscard]] std::string text_at(const char* key, u64 i) const;

private:
    [[nodiscard]] const nlohmann::json* get(const char* key) const;
    [[nodiscard]] const nlohmann::json& array(const char* key) const;

    const nlohmann::json* json_;
    std::string place_;
};

/// Limit of numbers that are stored as floats.
inline constexpr f64 largest_float = 3e38;
/// The number `key`, or `otherwise`. Refuses numbers outside [low, high].
[[nodiscard]] f32 number_within(const gltf_value& from, const char* key, f64 otherwise, f64 low, f64 high);
/// Sets `out` if the key is present. Refuses another count, and numbers outside the range of a float.
void read_floats(const gltf_value& from, const char* key, std::span<f32> out);

/// The file needs too much memory. Unlike other refusals, it holds for optional parts too: otherwise the free
/// memory would decide which parts a picture shows.
class gltf_too_large : public settings_error {
public:
    using settings_error::settings_error;
};

class gltf_document {
public:
    /// Reads the file and checks its version and extensions. Throws settings_error for the key "mesh".
    /// `most_bytes` limits what charge() counts.
    gltf_document(const std::filesystem::path& path, u64 most_bytes);

    /// Counts `bytes` that the part of the file at `place` expands to, before they are allocated. Throws
    /// gltf_too_large if the file exceeds its limit by them.
    void charge(const std::string& place, u64 bytes);

    /// True if the reader reads the extension. Pictures need not show what it specifies.
    [[nodiscard]] static bool is_supported(std::string_view extension);
    [[nodiscard]] gltf_value root() const { return {json_, path_.string()}; }
    /// Returns the element of the file's array `array` that `from`.`key` names by index. Refuses a missing
    /// key and indices beyond the end.
    [[nodiscard]] gltf_value referred(const gltf_value& from, const char* key, const char* array) const;
    /// The bytes of a buffer view, decompressed (EXT_meshopt_compression), valid while this object exists.
    [[nodiscard]] std::span<const std::byte> view(const gltf_value& buffer_view);
    /// Returns the picture to which the uri or the buffer view of an image refers.
    [[nodiscard]] picture image(const gltf_value& image);

private:
    void read_container(std::vector<std::byte> bytes);
    void check_head() const;
    [[noreturn]] void refuse_first_version() const;
    [[nodiscard]] const std::vector<std::byte>& buffer(u64 i);
    /// The bytes that `part` names by buffer, byteOffset and byteLength.
    [[nodiscard]] std::span<const std::byte> raw_view(const gltf_value& part);
    /// Returns the file that a uri names. This file must be in the folder of the glTF file or below it.
    [[nodiscard]] std::filesystem::path sibling_path(const gltf_value& from, const std::string& uri) const;

    std::filesystem::path path_;
    u64 most_bytes_, charged_bytes_ = 0;
    nlohmann::json json_;
    std::vector<std::byte> chunk_;                                ///< BIN chunk of a .glb
    std::vector<std::optional<std::vector<std::byte>>> buffers_;  ///< buffers read so far
    std::map<std::string, std::vector<std::byte>> decompressed_;  ///< buffer views, by place
};

/// Returns the transform that a material applies to the coordinates of one of its textures. Sets
/// `texture_set` to the set of texture coordinates that the extension names, if any.
[[nodiscard]] texture_transform texture_transform_of(const gltf_value& texture_info, u64& texture_set);

}  // namespace carousel::stages
