// Finds and loads the module that encodes.
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include "core/errors.hpp"
#include "core/executable_path.hpp"
#include "stages/encode/encoder.hpp"

namespace carousel::stages {
namespace {

std::string module_path() { return executable_folder() + "/libcarousel-film.so"; }

const encoder_functions& functions() {
    if (const std::string why = why_no_films(); !why.empty()) throw config_error(why);
    // never closed: ffmpeg's libraries do not unload cleanly
    void* module = ::dlopen(module_path().c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module == nullptr) throw config_error(fmt::format("loading {}: {}", module_path(), ::dlerror()));
    const auto get = reinterpret_cast<encoder_module>(::dlsym(module, encoder_module_symbol));
    if (get == nullptr) throw config_error(fmt::format("{} has another version: rebuild it", module_path()));
    return *get();
}

[[noreturn]] void fail(const std::string& why, bool refused) {
    if (refused) throw config_error(why);
    throw output_error(why);
}

}  // namespace

std::string why_no_films() {
    const std::string path = module_path();
    if (::access(path.c_str(), R_OK) == 0) return "";
    return fmt::format(
        "carousel-encode and films need {}, which is missing: install ffmpeg's libraries (apt-get install "
        "libavcodec-dev libavformat-dev libavutil-dev libswscale-dev) and build again",
        path);
}

std::unique_ptr<encoder> make_encoder(const encode_settings& with) {
    std::string why;
    bool refused = false;
    std::unique_ptr<encoder> made(functions().make(with, why, refused));
    if (!made) fail(why, refused);
    return made;
}

void check_encoder(const encode_settings& with) {
    std::string why;
    bool refused = false;
    if (!functions().check(with, why, refused)) fail(why, refused);
}

}  // namespace carousel::stages
