#include "stages/compression/compression.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "core/types.hpp"

#ifdef CAROUSEL_WITH_LZ4
#include <lz4frame.h>
#endif
#ifdef CAROUSEL_WITH_ZSTD
#include <zstd.h>
#endif

namespace carousel::stages {
namespace {

[[noreturn]] [[maybe_unused]] void failed(std::string_view how, const char* what) {
    throw output_error(fmt::format("{}: {}", how, what));
}

#ifdef CAROUSEL_WITH_LZ4
void lz4_compress(std::span<const std::byte> from, std::vector<std::byte>& to) {
    LZ4F_preferences_t preferences{};
    preferences.frameInfo.contentSize = from.size();
    to.resize(LZ4F_compressFrameBound(from.size(), &preferences));
    const std::size_t got = LZ4F_compressFrame(to.data(), to.size(), from.data(), from.size(), &preferences);
    if (LZ4F_isError(got) != 0) failed("lz4", LZ4F_getErrorName(got));
    to.resize(got);
}

void lz4_decompress(std::span<const std::byte> from, std::span<std::byte> to) {
    LZ4F_dctx* made = nullptr;
    if (LZ4F_isError(LZ4F_createDecompressionContext(&made, LZ4F_VERSION)) != 0) failed("lz4", "no memory");
    const std::unique_ptr<LZ4F_dctx, decltype(&LZ4F_freeDecompressionContext)> context(
        made, LZ4F_freeDecompressionContext);
    std::size_t done = 0, hint = 1;
    while (hint != 0 && !from.empty()) {
        std::size_t room = to.size() - done, taken = from.size();
        hint = LZ4F_decompress(made, to.data() + done, &room, from.data(), &taken, nullptr);
        if (LZ4F_isError(hint) != 0) throw compression_error(fmt::format("lz4: {}", LZ4F_getErrorName(hint)));
        done += room;
        from = from.subspan(taken);
        if (room == 0 && taken == 0) break;
    }
    if (hint != 0 || done != to.size()) throw compression_error("lz4: the decompressed size is wrong");
}

std::size_t lz4_beginning(std::span<const std::byte> from, std::span<std::byte> to) noexcept {
    LZ4F_dctx* made = nullptr;
    if (LZ4F_isError(LZ4F_createDecompressionContext(&made, LZ4F_VERSION)) != 0) return 0;
    const std::unique_ptr<LZ4F_dctx, decltype(&LZ4F_freeDecompressionContext)> context(
        made, LZ4F_freeDecompressionContext);
    std::size_t done = 0;
    while (done < to.size()) {
        std::size_t room = to.size() - done, taken = from.size();
        if (LZ4F_isError(LZ4F_decompress(made, to.data() + done, &room, from.data(), &taken, nullptr)) != 0)
            break;
        done += room;
        from = from.subspan(taken);
        if (room == 0 && taken == 0) break;
    }
    return done;
}
#endif

#ifdef CAROUSEL_WITH_ZSTD
void zstd_compress(std::span<const std::byte> from, std::vector<std::byte>& to) {
    to.resize(ZSTD_compressBound(from.size()));
    const std::size_t got = ZSTD_compress(to.data(), to.size(), from.data(), from.size(), 1);
    if (ZSTD_isError(got) != 0) failed("zstd", ZSTD_getErrorName(got));
    to.resize(got);
}

void zstd_decompress(std::span<const std::byte> from, std::span<std::byte> to) {
    const std::size_t got = ZSTD_decompress(to.data(), to.size(), from.data(), from.size());
    if (ZSTD_isError(got) != 0) throw compression_error(fmt::format("zstd: {}", ZSTD_getErrorName(got)));
    if (got != to.size()) throw compression_error("zstd: the decompressed size is wrong");
}

std::size_t zstd_beginning(std::span<const std::byte> from, std::span<std::byte> to) noexcept {
    const std::unique_ptr<ZSTD_DStream, decltype(&ZSTD_freeDStream)> stream(ZSTD_createDStream(),
                                                                            ZSTD_freeDStream);
    if (!stream) return 0;
    ZSTD_inBuffer in{from.data(), from.size(), 0};
    ZSTD_outBuffer out{to.data(), to.size(), 0};
    while (out.pos < out.size) {
        const std::size_t taken = in.pos, written = out.pos;
        if (ZSTD_isError(ZSTD_decompressStream(stream.get(), &out, &in)) != 0) break;
        if (in.pos == taken && out.pos == written) break;
    }
    return out.pos;
}
#endif

}  // namespace

const std::vector<std::string>& compressions() {
    static const std::vector<std::string> all = {
#ifdef CAROUSEL_WITH_LZ4
        "lz4",
#endif
#ifdef CAROUSEL_WITH_ZSTD
        "zstd",
#endif
        "none"};
    return all;
}

void compress(std::string_view how, std::span<const std::byte> from, std::vector<std::byte>& to) {
#ifdef CAROUSEL_WITH_LZ4
    if (how == "lz4") return lz4_compress(from, to);
#endif
#ifdef CAROUSEL_WITH_ZSTD
    if (how == "zstd") return zstd_compress(from, to);
#endif
    to.assign(from.begin(), from.end());
}

// lz4: each byte of a match length represents up to 255 bytes. zstd: a block represents up to 128 KiB, and
// has a header of 3 bytes and at least one byte of content.
u64 most_uncompressed(std::string_view how, u64 compressed) noexcept {
    if (how == "lz4") return mul_sat(compressed, 255);
    if (how == "zstd") return mul_sat(div_ceil(compressed, 4), u64{128} << 10U);
    return compressed;
}

void decompress(std::string_view how, std::span<const std::byte> from, std::span<std::byte> to) {
#ifdef CAROUSEL_WITH_LZ4
    if (how == "lz4") return lz4_decompress(from, to);
#endif
#ifdef CAROUSEL_WITH_ZSTD
    if (how == "zstd") return zstd_decompress(from, to);
#endif
    if (!how.empty() && how != "none")
        throw config_error(
            fmt::format("it is compressed by {}, but this program was built without that library", how));
    if (from.size() != to.size())
        throw compression_error("the number of bytes differs from the declared size");
    if (!to.empty()) std::memcpy(to.data(), from.data(), to.size());
}

std::size_t decompress_beginning(std::string_view how, std::span<const std::byte> from,
                                 std::span<std::byte> to) noexcept {
#ifdef CAROUSEL_WITH_LZ4
    if (how == "lz4") return lz4_beginning(from, to);
#endif
#ifdef CAROUSEL_WITH_ZSTD
    if (how == "zstd") return zstd_beginning(from, to);
#endif
    if (!how.empty() && how != "none") return 0;
    const std::size_t bytes = std::min(from.size(), to.size());
    std::copy_n(from.begin(), bytes, to.begin());
    return bytes;
}

}  // namespace carousel::stages
