// The settings of the stages, as the viewer and the dashboard read them from the run's folder.
#include "viewer/watch/stage_settings.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/scratch_folder.hpp"

using namespace carousel;

TEST_CASE("the settings of the stages are read as text, and a stage without any is missing") {
    const scratch_folder folder;
    (void)folder.write("pipeline.json", R"({"pipeline": {"stages": [
        {"name": "light", "settings": {"sun": 4.4, "fog": 30, "on": true}},
        {"name": "fragment", "settings": {"materials": "gold, chrome"}},
        {"name": "vertex", "settings": {}}, {"name": 7, "settings": {"x": 1}}, 3]}})");
    const viewer::stage_settings found = viewer::read_stage_settings(folder.path.string());
    REQUIRE(found.size() == 2);
    using values = std::vector<std::pair<std::string, std::string>>;
    CHECK(found.at("light") == values{{"fog", "30"}, {"on", "true"}, {"sun", "4.4"}});
    CHECK(found.at("fragment") == values{{"materials", "gold, chrome"}});
}

TEST_CASE("a folder without a readable pipeline.json has no settings") {
    const scratch_folder folder;
    CHECK(viewer::read_stage_settings(folder.path.string()).empty());
    for (const char* text : {"", "[]", "{\"pipeline\": 1}", "{\"pipeline\": {\"stages\": {}}}"}) {
        (void)folder.write("pipeline.json", text);
        CHECK(viewer::read_stage_settings(folder.path.string()).empty());
    }
}
