// film_encoder: finds and loads the module.
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "core/errors.hpp"
#include "core/executable_path.hpp"
#include "stages/display/film_encoder.hpp"

namespace carousel::stages {
namespace {

std::string module_path() { return executable_folder() + "/libcarousel-film.so"; }

}  // namespace

std::string why_no_films() {
    const std::string path = module_path();
    if (::access(path.c_str(), R_OK) == 0) return "";
    return fmt::format(
        "this build can't write films ({} is missing): install ffmpeg's libraries (apt-get install "
        "libavcodec-dev libavformat-dev libavutil-dev libswscale-dev) and build again, or write pictures, "
        "e.g. frame_%05d.png",
        path);
}

std::unique_ptr<film_encoder> make_film_encoder(u32 width, u32 height, f64 fps) {
    if (const std::string why = why_no_films(); !why.empty()) throw config_error(why);
    // never closed: ffmpeg's libraries do not unload cleanly
    void* module = ::dlopen(module_path().c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module == nullptr) throw config_error(fmt::format("loading {}: {}", module_path(), ::dlerror()));
    const auto make = reinterpret_cast<film_encoder_maker>(::dlsym(module, film_encoder_symbol));
    if (make == nullptr) throw config_error(fmt::format("{} has another version: rebuild it", module_path()));
    std::string why;
    std::unique_ptr<film_encoder> made(make(width, height, fps, why));
    if (!made)
        throw output_error(fmt::format("can't write a film of {} x {} pixels: {}", width, height, why));
    return made;
}

}  // namespace carousel::stages
