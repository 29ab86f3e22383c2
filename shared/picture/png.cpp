#include "picture/png.hpp"

#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string_view>

#include <fmt/format.h>

#include "core/errors.hpp"

namespace carousel {
namespace {

constexpr std::size_t stripe_bytes = 256 * 1024;
constexpr u32 adler_base = 65521;
constexpr u8 filter_up = 2;  ///< each byte minus the byte above it

using bytes = std::vector<std::byte>;

void put_u32(bytes& to, u32 value) {
    for (int shift = 24; shift >= 0; shift -= 8) to.push_back(static_cast<std::byte>(value >> shift));
}

u32 crc_of(const std::byte* first, std::size_t count) {
    return crc32_gzip_refl(0, reinterpret_cast<const unsigned char*>(first), count);
}

/// A chunk: length, type, data, and the CRC of type and data.
void begin_chunk(bytes& to, std::string_view type) {
    put_u32(to, 0);
    for (const char c : type) to.push_back(static_cast<std::byte>(c));
}
void end_chunk(bytes& to, std::size_t begun) {
    const auto length = static_cast<u32>(to.size() - begun - 8);
    for (std::size_t k = 0; k < 4; ++k) to[begun + k] = static_cast<std::byte>(length >> (24 - 8 * k));
    put_u32(to, crc_of(to.data() + begun + 4, length + 4));
}
template <typename F>
void chunk(bytes& to, std::string_view type, F&& fill) {
    const std::size_t begun = to.size();
    begin_chunk(to, type);
    fill();
    end_chunk(to, begun);
}

/// Returns the Adler-32 of two concatenated byte strings, computed from the Adler-32 of each; `length` is the
/// number of bytes of the second string. Equivalent to zlib's adler32_combine().
u32 join_adler(u32 first, u32 second, u64 length) {
    const u64 a1 = first & 0xFFFFU, b1 = first >> 16U, a2 = second & 0xFFFFU, b2 = second >> 16U;
    const u64 a = (a1 + a2 + adler_base - 1) % adler_base;  // both checksums start from 1
    const u64 b = (b1 + b2 + (length % adler_base) * (a1 + adler_base - 1)) % adler_base;
    return static_cast<u32>(b << 16U | a);
}

/// Work memory for compression, in addition to the pixels. The memory is kept per thread, so that it is not
/// mapped again for each stripe.
struct packer {
    isal_zstream stream;
    std::array<u8, ISAL_DEF_LVL1_DEFAULT> tables;
    std::vector<u8> rows;
    std::vector<u8> packed;

    /// Compresses `rows` into `packed`, as one or more deflate blocks that end on a byte boundary and do not
    /// refer to bytes of another stripe.
    void pack(bool last) {
        isal_deflate_init(&stream);
        stream.level = 1;
        stream.level_buf = tables.data();
        stream.level_buf_size = static_cast<u32>(tables.size());
        stream.flush = FULL_FLUSH;
        stream.end_of_stream = last ? 1 : 0;
        stream.next_in = rows.data();
        stream.avail_in = static_cast<u32>(rows.size());
        packed.resize(std::max(packed.size(), rows.size() + rows.size() / 8 + 1024));
        std::size_t written = 0;
        do {  // there is one iteration, except for incompressible pixels
            if (written == packed.size()) packed.resize(packed.size() * 2);
            stream.next_out = packed.data() + written;
            stream.avail_out = static_cast<u32>(packed.size() - written);
            if (const int failed = isal_deflate(&stream); failed != COMP_OK)
                throw output_error(fmt::format("can't encode a picture as PNG: isal_deflate: {}", failed));
            written = packed.size() - stream.avail_out;
        } while (stream.avail_out == 0);
        packed_bytes = written;
    }
    std::size_t packed_bytes = 0;
};

packer& own_packer() {
    thread_local const std::unique_ptr<packer> it = std::make_unique<packer>();
    return *it;
}

struct picture {
    const u8* rgba;
    u64 row_bytes;
    u32 height, stripe_rows;
    [[nodiscard]] u32 stripes() const { return (height + stripe_rows - 1) / stripe_rows; }
};

struct stripe {
    bytes chunk;
    u32 adler = 1;
    u64 filtered = 0;  ///< bytes before packing
};

// This is a separate function, so that __restrict lets the compiler assume that the rows do not overlap.
void subtract(const u8* __restrict row, const u8* __restrict above, u64 count, u8* __restrict out) {
    for (u64 x = 0; x < count; ++x) out[x] = static_cast<u8>(row[x] - above[x]);
}

void filter(const picture& p, u32 first, u32 end, std::vector<u8>& to) {
    const u64 count = p.row_bytes;
    to.resize((count + 1) * (end - first));
    u8* out = to.data();
    for (u32 y = first; y < end; ++y, out += count + 1) {
        const u8* row = p.rgba + y * count;
        out[0] = filter_up;
        if (y == 0) {
            std::memcpy(out + 1, row, count);  // the row above the first one counts as zeros
        } else {
            subtract(row, row - count, count, out + 1);
        }
    }
}

// Writes one IDAT chunk per stripe, so that the thread that compresses a stripe also computes the CRC of the
// stripe's chunk.
void pack_stripe(const picture& p, u32 k, stripe& s) {
    packer& own = own_packer();
    filter(p, k * p.stripe_rows, std::min(p.height, (k + 1) * p.stripe_rows), own.rows);
    own.pack(k + 1 == p.stripes());
    s.adler = isal_adler32(1, own.rows.data(), own.rows.size());
    s.filtered = own.rows.size();
    s.chunk.reserve(own.packed_bytes + 16);
    chunk(s.chunk, "IDAT", [&] {
        if (k == 0) s.chunk.insert(s.chunk.end(), {std::byte{0x78}, std::byte{0x01}});  // zlib header
        const auto* packed = reinterpret_cast<const std::byte*>(own.packed.data());
        s.chunk.insert(s.chunk.end(), packed, packed + own.packed_bytes);
    });
}

void put_header(bytes& to, u32 width, u32 height) {
    for (const char c : std::string_view("\x89PNG\r\n\x1A\n")) to.push_back(static_cast<std::byte>(c));
    chunk(to, "IHDR", [&] {
        put_u32(to, width);
        put_u32(to, height);
        for (const int value : {8 /*bits*/, 6 /*RGBA*/, 0, 0, 0}) to.push_back(static_cast<std::byte>(value));
    });
    chunk(to, "sRGB", [&] { to.push_back(std::byte{0}); });
}

}  // namespace

void one_by_one(u32 parts, const std::function<void(u32 part)>& body) {
    for (u32 k = 0; k < parts; ++k) body(k);
}

u32 png_stripe_rows(u32 width) noexcept {
    return static_cast<u32>(std::max<u64>(1, stripe_bytes / (u64{width} * 4 + 1)));
}

std::vector<std::byte> encode_png(std::span<const std::byte> rgba, u32 width, u32 height,
                                  const part_runner& run, u32 stripe_rows) {
    CAROUSEL_ASSERT(width > 0 && height > 0 && rgba.size() == std::size_t{width} * height * 4);
    const picture p{reinterpret_cast<const u8*>(rgba.data()), u64{width} * 4, height,
                    std::min(height, stripe_rows != 0 ? stripe_rows : png_stripe_rows(width))};
    std::vector<stripe> stripes(p.stripes());
    run(p.stripes(), [&](u32 k) { pack_stripe(p, k, stripes[k]); });
    std::size_t total = 128;
    u32 adler = 1;
    for (const stripe& s : stripes) {
        total += s.chunk.size();
        adler = join_adler(adler, s.adler, s.filtered);
    }
    bytes out;
    out.reserve(total);
    put_header(out, width, height);
    for (const stripe& s : stripes) out.insert(out.end(), s.chunk.begin(), s.chunk.end());
    chunk(out, "IDAT", [&] { put_u32(out, adler); });
    chunk(out, "IEND", [] {});
    return out;
}

}  // namespace carousel
