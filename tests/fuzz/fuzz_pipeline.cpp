// A pipeline file from anywhere: a pipeline whose indices fit, or an error message with the place in the
// file. Input: the TOML text, then values for --set after bytes 0xFF.
#include "core/errors.hpp"
#include "shm/control_block.hpp"
#include "spec/options.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace carousel;
    test::bytes in(data, size);
    const std::string text = in.part();
    supervisor::pipeline_options options;
    while (in.left() > 0 && options.set.size() < 8) options.set.push_back(in.part());
    try {
        const supervisor::pipeline p =
            supervisor::parse_pipeline(text, "fuzz.toml", supervisor::overrides_from(options));
        test::require(!p.stages.empty() && p.stages.size() <= shm::max_stages, "a pipeline has stages");
        for (std::size_t k = 0; k < p.stages.size(); ++k) {
            const supervisor::stage_spec& s = p.stages[k];
            test::require(s.input_indices.size() == s.inputs.size(), "every input is wired");
            for (const u32 i : s.input_indices)
                test::require(i < k && p.stages[i].has_output, "producers come first");
            test::require(s.settings.is_object(), "settings are an object");
            (void)s.settings.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
        }
    } catch (const config_error& e) {
        const std::string what = e.what();
        test::require(what.find("fuzz.toml") != std::string::npos || what.find("--set") != std::string::npos,
                      "a refusal names its place");
    }
    return 0;
}
