// The network in the repository, on views that it was not trained on; and files that are not networks.
#include <cstring>
#include <fstream>

#include "core/errors.hpp"
#include "core/io.hpp"
#include "stages/inference/infer.hpp"
#include "stages/inference/training.hpp"
#include "stages/inference/views.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"

using namespace carousel;
using namespace carousel::stages;
using carousel::test::contains;

TEST_CASE("the shipped network recognises 95 of 100 held-out views, an untrained one does not") {
    const pictures held_out = render_views(0, 600);
    CHECK(accuracy(*read_weights(CAROUSEL_NETWORK), held_out) >= 0.95);
    CHECK(accuracy(kernels::net_weights{}, held_out) < 0.2);
}

TEST_CASE("training makes a network that is better than chance, and the same one again") {
    const pictures few = render_views(first_training_view, 300);
    const auto one = train(few, 3), two = train(few, 3);
    CHECK(std::memcmp(one.get(), two.get(), sizeof *one) == 0);
    CHECK(accuracy(*one, few) > 0.5);
}

TEST_CASE("a view is a function of its number") {
    const pictures all = render_views(5, 3), last = render_views(7, 1);
    CHECK(std::memcmp(all.grey.data() + 2 * kernels::net_inputs, last.grey.data(), kernels::net_inputs) == 0);
    CHECK(all.classes == std::vector<u32>{5, 0, 1});
}

TEST_CASE("a file that is not a network is refused with a remedy") {
    const scratch_folder folder;
    const std::string file = (folder.path / "a.net").string();
    const auto why = [&] {
        try {
            (void)read_weights(file);
        } catch (const config_error& e) {
            return std::string(e.what());
        }
        return std::string();
    };
    CHECK_THAT(why(), contains("create one with carousel-train-shapes FILE"));
    std::ofstream(file) << "short";
    CHECK_THAT(why(), contains("5 bytes, 33144 expected"));
    kernels::net_weights w;
    w.hidden = 16;
    write_weights(file, w);
    CHECK_THAT(why(), contains("is not a network with 1024 inputs, 32 hidden neurons and 6 classes"));
    w.hidden = kernels::net_hidden;
    write_weights(file, w);
    CHECK(why().empty());
}
