// The decoders of pictures, one per library.

#include "stages/assets/texture.hpp"

#include <spng.h>

#include <stdexcept>

namespace carousel::stages {
namespace {

void expect_ok(int status) {
    if (status != 0) {
        throw std::runtime_error(spng_strerror(status));
    }
}

class png_decoder final : public texture_decoder {
public:
    explicit png_decoder(std::span<const std::byte> bytes) : png_(spng_ctx_new(0), spng_ctx_free) {
        if (!png_) {
            throw std::runtime_error("out of memory");
        }
        expect_ok(spng_set_image_limits(png_.get(), largest_texture, largest_texture));
        expect_ok(spng_set_png_buffer(png_.get(), bytes.data(), bytes.size()));
    }

    texture_size size() override {
        spng_ihdr header{};
        expect_ok(spng_get_ihdr(png_.get(), &header));
        return {header.width, header.height};
    }

    void decode(const texture_size&, std::vector<u8>& rgba) override {
        std::size_t bytes = 0;
        expect_ok(spng_decoded_image_size(png_.get(), SPNG_FMT_RGBA8, &bytes));
        rgba.resize(bytes);
        expect_ok(spng_decode_image(png_.get(), rgba.data(), bytes, SPNG_FMT_RGBA8, SPNG_DECODE_TRNS));
    }

private:
    std::unique_ptr<spng_ctx, void (*)(spng_ctx*)> png_;
};

}  // namespace

std::unique_ptr<texture_decoder> make_png_decoder(std::span<const std::byte> bytes) {
    return std::make_unique<png_decoder>(bytes);
}

}  // namespace carousel::stages

#if CAROUSEL_WITH_JPEG
#include <turbojpeg.h>

namespace carousel::stages {
namespace {

class jpeg_decoder final : public texture_decoder {
public:
    explicit jpeg_decoder(std::span<const std::byte> bytes)
        : bytes_(bytes), jpeg_(tjInitDecompress(), tjDestroy) {
        if (!jpeg_) {
            throw std::runtime_error("out of memory");
        }
    }

    texture_size size() override {
        int width = 0;
        int height = 0;
        int subsampling = 0;
        int colours = 0;
        expect_ok(
            tjDecompressHeader3(jpeg_.get(), data(), bytes_.size(), &width, &height, &subsampling, &colours));
        if (colours == TJCS_CMYK || colours == TJCS_YCCK) {
            throw std::runtime_error("its colours are CMYK");
        }
        return {static_cast<u32>(width), static_cast<u32>(height)};
    }

    void decode(const texture_size& size, std::vector<u8>& rgba) override {
        rgba.resize(std::size_t{size.width} * size.height * 4);
        // If the library only warns about a picture, the picture is refused, too, because such a warning
        // means that the picture is incomplete.
        expect_ok(tjDecompress2(jpeg_.get(), data(), bytes_.size(), rgba.data(), static_cast<int>(size.width),
                                0, static_cast<int>(size.height), TJPF_RGBA,
                                TJFLAG_ACCURATEDCT | TJFLAG_LIMITSCANS));
    }

private:
    void expect_ok(int status) const {
        if (status != 0) {
            throw std::runtime_error(tjGetErrorStr2(jpeg_.get()));
        }
    }
    [[nodiscard]] const unsigned char* data() const {
        return reinterpret_cast<const unsigned char*>(bytes_.data());
    }

    std::span<const std::byte> bytes_;
    std::unique_ptr<void, int (*)(tjhandle)> jpeg_;
};

}  // namespace

std::unique_ptr<texture_decoder> make_jpeg_decoder(std::span<const std::byte> bytes) {
    return std::make_unique<jpeg_decoder>(bytes);
}

}  // namespace carousel::stages

#else

namespace carousel::stages {

std::unique_ptr<texture_decoder> make_jpeg_decoder(std::span<const std::byte>) {
    throw std::runtime_error("it is a JPEG, and these programs were built without libjpeg-turbo");
}

}  // namespace carousel::stages

#endif
