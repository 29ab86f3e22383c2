// carousel-train-shapes FILE: trains the network that classifies the renderer's shapes, and prints its
// accuracy on the training views and on other views.
#include <cstdio>
#include <string>
#include <string_view>

#include "core/errors.hpp"
#include "core/process.hpp"
#include "stages/inference/infer.hpp"
#include "stages/inference/training.hpp"
#include "stages/inference/views.hpp"

int main(int argc, char** argv) {
    using namespace carousel;
    constexpr u64 training_views = 9000, held_out = 3000;
    constexpr u32 epochs = 25;
    const std::string_view file = argc == 2 ? argv[1] : "";
    if (file == "--help" || file == "-h") {
        std::puts("Usage: carousel-train-shapes FILE");
        return after_output(exit_code::ok);
    }
    if (file.empty() || file.starts_with('-')) {
        std::fprintf(stderr, "Usage: carousel-train-shapes FILE\n");
        return exit_code::usage;
    }
    try {
        const stages::pictures seen = stages::render_views(stages::first_training_view, training_views);
        const auto weights = stages::train(seen, epochs);
        stages::write_weights(std::string(file), *weights);
        std::printf(
            "classified correctly: of the %llu training views %.2f %%, of the %llu held-out views %.2f %%\n",
            static_cast<unsigned long long>(training_views), 100 * stages::accuracy(*weights, seen),
            static_cast<unsigned long long>(held_out),
            100 * stages::accuracy(*weights, stages::render_views(0, held_out)));
        return after_output(exit_code::ok);
    } catch (const error& e) {
        std::fprintf(stderr, "error: %s\n", e.what());
        return e.code();
    }
}
