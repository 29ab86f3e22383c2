#include <spng.h>

#include <stdexcept>

#include "stages/geometry/texture_decoder.hpp"

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
