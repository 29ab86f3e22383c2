#pragma once
// Compression of bytes, by the libraries of zstd and lz4 where this was built with them.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/errors.hpp"
#include "core/types.hpp"

namespace carousel::stages {

/// What is compressed can't be undone, or comes to another size.
class compression_error : public error {
public:
    explicit compression_error(const std::string& what) : error(exit_code::usage, what) {}
};

/// "none", and of "lz4", "zstd" those that were built in.
[[nodiscard]] const std::vector<std::string>& compressions();

/// Fills `to`, whose size is what came of it. `how`: one of compressions(). Throws error.
void compress(std::string_view how, std::span<const std::byte> from, std::vector<std::byte>& to);
/// The most bytes that `compressed` bytes can come to, by the format of `how`; `compressed` itself for an
/// unknown name and for none.
[[nodiscard]] u64 most_uncompressed(std::string_view how, u64 compressed) noexcept;
/// `how` as it was named ("" is none); `to` has the size that is expected: no byte is written beyond it,
/// whatever the bytes are. Throws compression_error; config_error: it was not built in.
void decompress(std::string_view how, std::span<const std::byte> from, std::span<std::byte> to);

}  // namespace carousel::stages
