#pragma once
// URIs in glTF files: data: URIs and percent encoding (RFC 2397, 3986, 4648). Internal to the glTF reader.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace carousel::stages {

[[nodiscard]] bool is_data_uri(std::string_view uri) noexcept;
/// Returns nothing unless the data is complete base64.
[[nodiscard]] std::optional<std::vector<std::byte>> decode_data_uri(std::string_view uri);
/// Converts "a%20b" to "a b"; a percent sign without two hexadecimal digits is kept.
[[nodiscard]] std::string decode_percent(std::string_view uri);

}  // namespace carousel::stages
