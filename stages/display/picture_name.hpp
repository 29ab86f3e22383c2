#pragma once
// The file names of a picture sequence: "frame_%05d.png". The pattern comes from a user, so it is never
// passed to printf.

#include <filesystem>
#include <optional>
#include <string>

#include "core/types.hpp"
#include "stages/display/picture_format.hpp"

namespace carousel::stages {

class picture_name {
public:
    /// Parses "…%d…" or "…%0Nd…" (N from 1 to 20; "%%" is a percent sign). Throws settings_error for `key`:
    /// no conversion, two conversions, one of another type, one in the folder's part, or an extension that is
    /// not a picture's (picture_format.hpp) or that this build cannot write.
    picture_name(std::string key, const std::string& pattern);

    /// The file's path for one frame; relative patterns are resolved against `folder`.
    [[nodiscard]] std::filesystem::path of(u64 frame_number, const std::filesystem::path& folder) const;
    /// Returns the frame that a file of that name shows; empty: the name does not belong to this sequence.
    [[nodiscard]] std::optional<u64> number_of(const std::string& file_name) const;
    [[nodiscard]] picture_format format() const noexcept { return format_; }
    /// The folder of the pictures.
    [[nodiscard]] std::filesystem::path parent(const std::filesystem::path& folder) const;

private:
    std::string before_, after_;  ///< the text around the number, "%%" already replaced
    picture_format format_ = picture_format::png;
    std::size_t digits_ = 1;  ///< the number is padded with zeros to this length
};

}  // namespace carousel::stages
