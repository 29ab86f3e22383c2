#pragma once
// Compression of bytes with zstd and lz4, if this build has the libraries.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/errors.hpp"
#include "core/types.hpp"

namespace carousel::stages {

/// Thrown if data can't be decompressed, or if its decompressed size is not the expected one.
class compression_error : public error {
public:
    explicit compression_error(const std::string& what) : error(exit_code::usage, what) {}
};

/// Returns the names of the formats that this build has: always "none", and "lz4" and "zstd" if this build
/// has their libraries.
[[nodiscard]] const std::vector<std::string>& compressions();

/// Compresses `from` into `to`, which is resized to the result. `how`: one of compressions(). Throws
/// output_error.
void compress(std::string_view how, std::span<const std::byte> from, std::vector<std::byte>& to);
/// Returns an upper bound of the decompressed size of `compressed` bytes in the format `how`; for an unknown
/// name and for "none" this is `compressed` itself.
[[nodiscard]] u64 most_uncompressed(std::string_view how, u64 compressed) noexcept;
/// Decompresses `from` into `to`, whose size must be the decompressed size; never writes beyond `to`. `how`:
/// the name of the format; "none" and "" if the bytes are not compressed. Throws compression_error;
/// config_error if this build does not have the format.
void decompress(std::string_view how, std::span<const std::byte> from, std::span<std::byte> to);
/// Decompresses the beginning of data whose end is missing. Returns the number of bytes that were written to
/// the beginning of `to`; 0 if there are none, or if this build does not have the format.
[[nodiscard]] std::size_t decompress_beginning(std::string_view how, std::span<const std::byte> from,
                                               std::span<std::byte> to) noexcept;

}  // namespace carousel::stages
