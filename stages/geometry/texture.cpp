#include "stages/geometry/texture.hpp"

#include <spng.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <memory>

#include <fmt/format.h>

#include "stages/settings.hpp"

namespace carousel::stages {
namespace {

/// A PNG file whose header has been read and found usable.
class png_file {
public:
    png_file(const std::filesystem::path& path, const std::string& key) : path_(path), key_(key) {
        struct stat s {};
        if (stat(path.c_str(), &s) == 0 && !S_ISREG(s.st_mode)) {
            refuse("it is not a file");
        }
        file_.reset(std::fopen(path.c_str(), "rbe"));
        if (!file_) {
            refuse(errno_text(errno));
        }
        png_.reset(spng_ctx_new(0));
        if (!png_) {
            refuse("out of memory");
        }
        expect_ok(spng_set_image_limits(png_.get(), largest_texture, largest_texture));
        expect_ok(spng_set_png_file(png_.get(), file_.get()));
        expect_ok(spng_get_ihdr(png_.get(), &header_));
    }

    [[nodiscard]] texture_size size() const noexcept { return {header_.width, header_.height}; }

    [[nodiscard]] texture_data decode() {
        texture_data t{header_.width, header_.height, {}};
        std::size_t bytes = 0;
        expect_ok(spng_decoded_image_size(png_.get(), SPNG_FMT_RGBA8, &bytes));
        t.rgba.resize(bytes);
        expect_ok(spng_decode_image(png_.get(), t.rgba.data(), bytes, SPNG_FMT_RGBA8, SPNG_DECODE_TRNS));
        return t;
    }

private:
    [[noreturn]] void refuse(std::string_view why) const {
        throw settings_error(key_, fmt::format("can't read the texture {}: {}", path_.string(), why));
    }

    void expect_ok(int status) const {
        if (status != 0) {
            refuse(fmt::format("{} (a PNG of at most {} x {} pixels is needed; convert other pictures)", spng_strerror(status), largest_texture,
                               largest_texture));
        }
    }

    std::filesystem::path path_;
    std::string key_;
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_{nullptr, std::fclose};
    std::unique_ptr<spng_ctx, void (*)(spng_ctx*)> png_{nullptr, spng_ctx_free};
    spng_ihdr header_{};
};

}  // namespace

texture_data load_png_texture(const std::filesystem::path& path, const std::string& key) { return png_file(path, key).decode(); }

texture_size png_size(const std::filesystem::path& path, const std::string& key) { return png_file(path, key).size(); }

}  // namespace carousel::stages
