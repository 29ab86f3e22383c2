#pragma once
// Shared by the fuzz targets: taking numbers off the input, files that the code under test reads, and the
// check that turns a wrong result into a crash.

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "core/types.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace carousel::test {

inline void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "does not hold: %s\n", what);
    std::abort();
}

/// Takes values from the front; zeroes past the end.
class bytes {
public:
    bytes(const std::uint8_t* data, std::size_t size) : at_(data), left_(size) {}
    template <typename T>
    T number() {
        T value{};
        const std::size_t n = left_ < sizeof value ? left_ : sizeof value;
        if (n > 0) std::memcpy(&value, at_, n);
        at_ += n;
        left_ -= n;
        return value;
    }
    u8 u8_or(u8 otherwise) { return left_ > 0 ? number<u8>() : otherwise; }
    /// Up to the next byte 0xFF, which no text contains, or the end.
    std::string part() {
        const std::string_view all(reinterpret_cast<const char*>(at_), left_);
        const std::size_t n = std::min(all.find('\xFF'), left_);
        std::string text(all.substr(0, n));
        const std::size_t taken = n < left_ ? n + 1 : n;
        at_ += taken;
        left_ -= taken;
        return text;
    }
    [[nodiscard]] std::size_t left() const { return left_; }

private:
    const std::uint8_t* at_;
    std::size_t left_;
};

/// Replaces each byte 1 and the two bytes after it, C and K, by 2^(K mod 18) times C: an input of a few bytes
/// becomes a message of a realistic size, or one that is nested as deep as a message can be.
inline std::string expanded(std::string_view text) {
    std::string out;
    for (std::size_t k = 0; k < text.size(); ++k) {
        if (text[k] != '\x01' || text.size() - k < 3 || out.size() > (1U << 20U)) {
            out += text[k];
            continue;
        }
        out.append(std::size_t{1} << static_cast<u8>(text[k + 2]) % 18U, text[k + 1]);
        k += 2;
    }
    return out;
}

/// A folder in memory for the files of this process; removed on a normal exit.
class scratch {
public:
    scratch() {
        char name[] = "/dev/shm/carousel_fuzz_XXXXXX";
        require(::mkdtemp(name) != nullptr, "/dev/shm takes a folder");
        folder_ = name;
    }
    ~scratch() {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }
    scratch(const scratch&) = delete;
    scratch& operator=(const scratch&) = delete;
    std::string write(const std::string& name, std::string_view text) const {
        const std::string path = folder_ + "/" + name;
        std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
        return path;
    }
    [[nodiscard]] const std::string& folder() const { return folder_; }

private:
    std::string folder_;
};

}  // namespace carousel::test
