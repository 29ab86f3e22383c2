// A texture from anywhere. Input: the file, as PNG, JPEG or neither.
#include "core/errors.hpp"
#include "stages/assets/texture.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace carousel;
    static const test::scratch files;
    const std::string path = files.write("texture.picture", {reinterpret_cast<const char*>(data), size});
    try {
        const stages::texture_size s = stages::size_of_texture({path, {}, {}}, "texture");
        test::require(s.width > 0 && s.height > 0 && s.width <= stages::largest_texture &&
                          s.height <= stages::largest_texture,
                      "its size is possible");
        if (u64{s.width} * s.height > 1U << 20U) return 0;  // large ones are only slow
        const stages::texture_data t = stages::load_texture({path, {}, {}}, "texture");
        test::require(t.rgba.size() == u64{t.width} * t.height * 4, "all pixels are there");
    } catch (const config_error& e) {
        test::require(std::string(e.what()).find(path) != std::string::npos, "a refusal names the file");
    }
    return 0;
}
