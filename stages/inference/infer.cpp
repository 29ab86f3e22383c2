#include "stages/inference/infer.hpp"

#include "core/errors.hpp"
#include "stages/inference/weights_file.hpp"

namespace carousel::stages {
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
                           ": weights = \"FILE\" is missing: the network that it runs");
    file_ = with.path(written);
    (void)read_weights(file_);  // reports a damaged file before anything is started
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

}  // namespace carousel::stages
