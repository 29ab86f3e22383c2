#include "stages/inference/weights_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <span>

#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/output_file.hpp"

namespace carousel::stages {

using kernels::net_weights;

std::unique_ptr<net_weights> read_weights(const std::string& file) {
    const auto text = read_file(file);
    if (!text)
        throw config_error(
            fmt::format("reading the network {}: {}: create one with carousel-train-shapes FILE", file,
                        errno_text(errno)));
    auto w = std::make_unique<net_weights>();
    const net_weights wanted;
    if (text->size() == sizeof *w) std::memcpy(w.get(), text->data(), sizeof *w);
    if (text->size() != sizeof *w || w->magic != wanted.magic || w->version != wanted.version ||
        w->inputs != wanted.inputs || w->hidden != wanted.hidden || w->classes != wanted.classes ||
        w->shift > 31)
        throw config_error(
            fmt::format("reading the network {}: it is not a network with {} inputs, {} hidden neurons and "
                        "{} classes ({} bytes, {} expected): recreate it with carousel-train-shapes",
                        file, wanted.inputs, wanted.hidden, wanted.classes, text->size(), sizeof *w));
    return w;
}

void write_weights(const std::string& file, const net_weights& w) {
    if (const int failed = write_output_file(file, {std::as_bytes(std::span(&w, 1))}); failed != 0)
        throw output_error(fmt::format("writing {}: {}", file, output_cause(failed)));
}

}  // namespace carousel::stages
