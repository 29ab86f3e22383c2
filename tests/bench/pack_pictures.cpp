// The rate at which pictures are packed: the display's own PNG writer compared with spng (zlib) and
// libdeflate, on a given picture. For the choice of a packer, and for the bound of a run that writes
// pictures.
//
//   pack_pictures PICTURE.png [THREADS] [ROUNDS] [FOLDER]
//
// THREADS: number of threads of the last table, where each packs its own picture [all cores]. ROUNDS: each
// figure is the median, and in brackets the minimum, of N rounds [25]. FOLDER: the last table also writes its
// files there, as a display does; they are removed again.
#include <isa-l/igzip_lib.h>
#include <spng.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

#include "core/clock.hpp"
#include "device/cpu/pool.hpp"
#include "stages/display/picture_file.hpp"

#ifdef CAROUSEL_BENCH_LIBDEFLATE
#include <libdeflate.h>
#endif

namespace {

using namespace carousel;
using namespace carousel::stages;

struct picture {
    u32 width = 0, height = 0;
    std::vector<std::byte> rgba;
};

void expect_ok(int status) {
    if (status != 0) throw std::runtime_error(spng_strerror(status));
}

picture read_png(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    const std::string png{std::istreambuf_iterator<char>(in), {}};
    const std::unique_ptr<spng_ctx, void (*)(spng_ctx*)> c(spng_ctx_new(0), spng_ctx_free);
    expect_ok(spng_set_png_buffer(c.get(), png.data(), png.size()));
    spng_ihdr header{};
    expect_ok(spng_get_ihdr(c.get(), &header));
    picture p{header.width, header.height, {}};
    p.rgba.resize(std::size_t{p.width} * p.height * 4);
    expect_ok(spng_decode_image(c.get(), p.rgba.data(), p.rgba.size(), SPNG_FMT_RGBA8, SPNG_DECODE_TRNS));
    return p;
}

/// The display's packer before: level 1, one filter.
std::size_t by_spng(const picture& p) {
    const std::unique_ptr<spng_ctx, void (*)(spng_ctx*)> c(spng_ctx_new(SPNG_CTX_ENCODER), spng_ctx_free);
    spng_set_option(c.get(), SPNG_ENCODE_TO_BUFFER, 1);
    spng_set_option(c.get(), SPNG_IMG_COMPRESSION_LEVEL, 1);
    spng_set_option(c.get(), SPNG_FILTER_CHOICE, SPNG_FILTER_CHOICE_UP);
    spng_ihdr header{};
    header.width = p.width;
    header.height = p.height;
    header.bit_depth = 8;
    header.color_type = SPNG_COLOR_TYPE_TRUECOLOR_ALPHA;
    expect_ok(spng_set_ihdr(c.get(), &header));
    expect_ok(spng_encode_image(c.get(), p.rgba.data(), p.rgba.size(), SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE));
    std::size_t bytes = 0;
    int status = 0;
    std::free(spng_get_png_buffer(c.get(), &bytes, &status));
    return bytes;
}

/// Rows with PNG's filter 0 (none), 1 (sub) or 2 (up).
std::vector<u8> filtered(const picture& p, u8 filter) {
    const std::size_t row = std::size_t{p.width} * 4;
    const auto* in = reinterpret_cast<const u8*>(p.rgba.data());
    std::vector<u8> out;
    for (std::size_t y = 0; y < p.height; ++y) {
        out.push_back(filter);
        for (std::size_t x = 0; x < row; ++x) {
            const u8 left = x >= 4 ? in[y * row + x - 4] : u8{0},
                     above = y > 0 ? in[(y - 1) * row + x] : u8{0};
            const u8 guess = filter == 1 ? left : filter == 2 ? above : u8{0};
            out.push_back(static_cast<u8>(in[y * row + x] - guess));
        }
    }
    return out;
}

std::size_t by_isal(const std::vector<u8>& in, std::vector<u8>& out, u32 level) {
    static constexpr u32 bytes[] = {0, ISAL_DEF_LVL1_DEFAULT, ISAL_DEF_LVL2_DEFAULT, ISAL_DEF_LVL3_DEFAULT};
    static std::vector<u8> tables(ISAL_DEF_LVL3_DEFAULT);
    static isal_zstream s;
    isal_deflate_init(&s);
    s.level = level;
    s.level_buf = level > 0 ? tables.data() : nullptr;
    s.level_buf_size = bytes[level];
    s.gzip_flag = IGZIP_ZLIB;
    s.end_of_stream = 1;
    s.next_in = const_cast<u8*>(in.data());
    s.avail_in = static_cast<u32>(in.size());
    s.next_out = out.data();
    s.avail_out = static_cast<u32>(out.size());
    if (isal_deflate(&s) != COMP_OK) throw std::runtime_error("isal_deflate failed");
    return s.total_out;
}

template <typename F>
void row(const std::string& name, std::size_t pixel_bytes, int rounds, F&& work) {
    std::vector<f64> ms;
    std::size_t bytes = 0;
    for (int k = 0; k < rounds; ++k) {
        const u64 began = now_ns();
        bytes = work();
        ms.push_back(static_cast<f64>(now_ns() - began) / 1e6);
    }
    std::sort(ms.begin(), ms.end());
    const f64 median = ms[ms.size() / 2];
    fmt::print("{:<34} {:6.2f} ({:5.2f}) ms {:7.0f} MB/s {:9} bytes\n", name, median, ms[0],
               static_cast<f64>(pixel_bytes) / 1e3 / median, bytes);
}

void compare(const picture& p, int rounds) {
    row("spng, level 1, up (the whole file)", p.rgba.size(), rounds, [&] { return by_spng(p); });
    row("ours (the whole file)", p.rgba.size(), rounds,
        [&] { return encode_png(p.rgba, p.width, p.height).size(); });
    row("JPEG, quality 90", p.rgba.size(), rounds,
        [&] { return encode_picture(picture_format::jpeg, p.rgba, p.width, p.height).head.size(); });
    for (const u8 filter : {0, 1, 2}) {
        const std::vector<u8> rows = filtered(p, filter);
        std::vector<u8> out(rows.size() * 2);
        const std::string_view name = std::string_view("none sub  up   ").substr(filter * 5U, 4);
        for (const u32 level : {0U, 1U, 2U, 3U})
            row(fmt::format("  deflate, filter {}: ISA-L {}", name, level), p.rgba.size(), rounds,
                [&] { return by_isal(rows, out, level); });
#ifdef CAROUSEL_BENCH_LIBDEFLATE
        const std::unique_ptr<libdeflate_compressor, void (*)(libdeflate_compressor*)> c(
            libdeflate_alloc_compressor(1), libdeflate_free_compressor);
        row(fmt::format("  deflate, filter {}: libdeflate 1", name), p.rgba.size(), rounds, [&] {
            return libdeflate_zlib_compress(c.get(), rows.data(), rows.size(), out.data(), out.size());
        });
#endif
    }
}

/// Pictures per second of N threads, each with its own pictures.
f64 rate(const picture& p, unsigned threads, int pictures, const std::filesystem::path& folder) {
    const u64 began = now_ns();
    std::vector<std::thread> all;
    for (unsigned t = 0; t < threads; ++t)
        all.emplace_back([&, t] {
            for (int k = 0; k < pictures; ++k) {
                const std::vector<std::byte> file = encode_png(p.rgba, p.width, p.height);
                if (!folder.empty()) write_picture_file(folder / fmt::format("pack-{}-{}.png", t, k), file);
            }
        });
    for (std::thread& t : all) t.join();
    const f64 seconds = static_cast<f64>(now_ns() - began) / 1e9;
    for (unsigned t = 0; !folder.empty() && t < threads; ++t)
        for (int k = 0; k < pictures; ++k)
            std::filesystem::remove(folder / fmt::format("pack-{}-{}.png", t, k));
    return threads * pictures / seconds;
}

}  // namespace

int main(int argc, char** argv) try {
    if (argc < 2) throw std::runtime_error("usage: pack_pictures PICTURE.png [THREADS] [ROUNDS] [FOLDER]");
    const picture p = read_png(argv[1]);
    const unsigned asked = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 0;
    const unsigned threads = asked > 0 ? asked : device::cpu::usable_cores();
    const int rounds = std::max(1, argc > 3 ? std::atoi(argv[3]) : 25);
    const std::filesystem::path folder = argc > 4 ? argv[4] : "";
    fmt::print("{} x {}, {} bytes of pixels\n", p.width, p.height, p.rgba.size());
    compare(p, rounds);
    for (unsigned t = 1;; t = std::min(t * 2, threads)) {
        std::vector<f64> rates;
        for (int k = 0; k < 5; ++k) rates.push_back(rate(p, t, 4 * rounds, folder));
        std::sort(rates.begin(), rates.end());
        fmt::print("ours on {:2} threads{}: {:7.0f} pictures/s (the most: {:.0f})\n", t,
                   folder.empty() ? "" : ", written", rates[2], rates[4]);
        if (t == threads) break;
    }
    return 0;
} catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
}
