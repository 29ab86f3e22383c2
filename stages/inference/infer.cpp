#include "stages/inference/infer.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <span>

#include "core/errors.hpp"
#include "core/io.hpp"
#include "core/output_file.hpp"

namespace carousel::stages {
using kernels::net_weights;
namespace {

constexpr const char* asset = "weights";

}  // namespace

description infer::configure(const configuration& with) {
    const input_description& input = require_one_input(with, "views of shapes");
    require_format(input.format, views_format(0), with.stage, input.stage);
    batch_ = input.format.find("grey")->shape[0];
    const std::string written = with.settings->text("weights", "");
    if (written.empty())
        throw config_error("stage " + with.stage +
                           ": the key weights is missing; expected weights = \"FILE\", the file of the "
                           "network that the stage runs");
    file_ = with.path(written);
    (void)read_weights(file_);  // done here so that a damaged file is reported before any process is started
    return {.outputs = {classes_format(batch_)}, .makes = {{asset, sizeof(kernels::net_weights)}}};
}

void infer::load_asset(std::string_view, std::span<std::byte> memory, environment& env) {
    const auto w = read_weights(file_);
    env.queue().copy(memory.data(), w.get(), sizeof *w);
    env.queue().drain();
}

void infer::prepare(environment& env) {
    weights_ = reinterpret_cast<const kernels::net_weights*>(env.asset(asset).data());
}

void infer::process(frame& f) {
    kernels::shape_net_args args;
    args.weights = weights_;
    args.pictures = f.input().plane<const u8>("grey").data();
    args.batch = static_cast<u32>(batch_);
    args.classes = f.output().plane<u32>("class").data();
    args.scores = f.output().plane<i32>("score").data();
    kernels::run_shape_net(f.queue(), args);
}

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
