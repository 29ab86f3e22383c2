#include "stages/assets/texture.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include <fmt/format.h>

#include "stages/sdk/configuration.hpp"

namespace carousel::stages {
namespace {

constexpr u8 png_start[] = {0x89, 'P', 'N', 'G'};
constexpr u8 jpeg_start[] = {0xFF, 0xD8, 0xFF};

class texture_reader {
public:
    texture_reader(const picture& p, const std::string& key)
        : name_(p.file.empty() ? p.name : p.file.string()), key_(key) {
        if (!p.bytes.empty()) {
            bytes_ = p.bytes;
        } else {
            read(p.file);
        }
        try {
            if (starts_with(png_start)) {
                decoder_ = make_png_decoder(bytes_);
            } else if (starts_with(jpeg_start)) {
                decoder_ = make_jpeg_decoder(bytes_);
            } else {
                throw std::runtime_error("it is neither a PNG nor a JPEG");
            }
            size_ = decoder_->size();
        } catch (const std::runtime_error& e) {
            refuse_content(e.what());
        }
        if (size_.width < 1 || size_.height < 1 || size_.width > largest_texture ||
            size_.height > largest_texture) {
            refuse_content(fmt::format("it has {} x {} pixels", size_.width, size_.height));
        }
    }

    [[nodiscard]] texture_size size() const noexcept { return size_; }

    [[nodiscard]] texture_data decode() {
        texture_data t{size_.width, size_.height, {}};
        try {
            decoder_->decode(size_, t.rgba);
        } catch (const std::bad_alloc&) {
            refuse(
                fmt::format("its {} x {} pixels need more memory than there is", size_.width, size_.height));
        } catch (const std::runtime_error& e) {
            refuse_content(e.what());
        }
        return t;
    }

private:
    void read(const std::filesystem::path& file) {
        struct stat s {};
        if (stat(file.c_str(), &s) != 0) {
            refuse(errno_text(errno));
        }
        if (!S_ISREG(s.st_mode)) {
            refuse("it is not a file");
        }
        std::ifstream in(file, std::ios::binary);
        own_.resize(static_cast<std::size_t>(s.st_size));
        if (!in || (s.st_size > 0 && !in.read(reinterpret_cast<char*>(own_.data()), s.st_size))) {
            refuse(errno_text(errno));
        }
        bytes_ = own_;
    }

    template <std::size_t Size>
    [[nodiscard]] bool starts_with(const u8 (&start)[Size]) const {
        return bytes_.size() >= Size &&
               std::equal(start, start + Size, reinterpret_cast<const u8*>(bytes_.data()));
    }

    [[noreturn]] void refuse(std::string_view why) const {
        throw settings_error(key_, fmt::format("can't read the texture {}: {}", name_, why));
    }
    [[noreturn]] void refuse_content(std::string_view why) const {
        refuse(fmt::format("{} (a PNG or JPEG of at most {} x {} pixels is needed; convert other pictures)",
                           why, largest_texture, largest_texture));
    }

    std::string name_;
    std::string key_;
    std::vector<std::byte> own_;
    std::span<const std::byte> bytes_;
    std::unique_ptr<texture_decoder> decoder_;
    texture_size size_;
};

}  // namespace

texture_data load_texture(const picture& p, const std::string& key) {
    return texture_reader(p, key).decode();
}

texture_size size_of_texture(const picture& p, const std::string& key) {
    return texture_reader(p, key).size();
}

}  // namespace carousel::stages
