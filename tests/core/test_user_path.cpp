#include <filesystem>

#include "core/errors.hpp"
#include "core/user_input.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"

using namespace carousel;
namespace fs = std::filesystem;

namespace {

/// The working directory, until its end.
struct inside {
    explicit inside(const fs::path& folder) { fs::current_path(folder); }
    ~inside() { fs::current_path(before); }
    inside(const inside&) = delete;
    inside& operator=(const inside&) = delete;
    fs::path before = fs::current_path();
};

}  // namespace

TEST_CASE("a percent sign of the working directory stands for itself in a pattern") {
    const scratch_folder folder;
    const fs::path here = fs::canonical(folder.path);
    fs::create_directory(here / "100%%");
    const inside there(here / "100%%");
    CHECK(absolute_pattern("f_%05d.png") == (here / "100%%%%" / "f_%05d.png").string());
    CHECK(absolute_pattern("../f_%d.png") == (here / "f_%d.png").string());
    CHECK(absolute_pattern("/a%%/f_%d.png") == "/a%%/f_%d.png");
    CHECK(literal_text(absolute_pattern("film.mp4")) == (here / "100%%" / "film.mp4").string());
}

TEST_CASE("a pattern has a literal text if it has no number's place") {
    CHECK(literal_text("") == "");
    CHECK(literal_text("a%%b%%%%") == "a%b%%");
    CHECK(literal_text(as_pattern("job%2Fbranch%")) == "job%2Fbranch%");
    for (const char* text : {"%d", "a%", "a%%%", "%05d.png"}) CHECK_FALSE(literal_text(text).has_value());
}

TEST_CASE("a deleted working directory is a user's error, for relative paths only") {
    const scratch_folder folder;
    fs::create_directory(folder.path / "gone");
    const inside there(folder.path / "gone");
    fs::remove(folder.path / "gone");
    CHECK(absolute_path("/a/b") == "/a/b");
    CHECK_THROWS_AS(absolute_path("b"), config_error);
    CHECK_THROWS_WITH(absolute_pattern("b"), test::contains("the working directory") &&
                                                 test::contains("deleted") && test::contains("change to"));
}
