// Dead letters of earlier versions.
#include "dead_letters/dead_letter.hpp"

#include <filesystem>
#include <fstream>

#include "core/errors.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"

using namespace carousel;

TEST_CASE("a dead letter of version 0.1.0 is refused by its version") {
    const scratch_folder runtime;
    const std::string folder = run::dead_letters_folder(runtime.path.string()) + "/middle-40";
    std::filesystem::create_directories(folder);
    // As that version wrote it: "sequence" and "number" are today's "ring_sequence" and "frame_number".
    std::ofstream(folder + "/letter.json") << R"({
  "version": 2, "stage": "middle", "program": "/tmp/middle", "sequence": 40, "number": 40, "time_s": 1.6,
  "attempts": 2, "width": 64, "height": 48, "in_flight": 2, "fps": 25.0, "settings": {}, "asked_device": "auto",
  "folder": "/tmp", "device": {"kind": "cpu", "uuid": "", "ordinal": 0}, "inputs": [], "latest": [],
  "outputs": [], "assets": [], "parameter_number": 0, "parameters": "", "parameter_schema": null,
  "capture_ns": 0, "metadata": ""
})";
    const auto refusal = test::contains(
        "letter.json is of version 2; this program reads version 4: replay it "
        "with the version of Carousel that wrote it");
    CHECK_THROWS_WITH(run::read_dead_letter(folder), refusal);
    CHECK_THROWS_WITH(run::dead_letters_in(runtime.path.string()), refusal);
}
