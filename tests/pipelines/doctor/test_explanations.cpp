// What `carousel explain` knows: every exit code and every state of the ring's words, and what it says of the
// rest.
#include <algorithm>
#include <set>
#include <string>

#include "core/errors.hpp"
#include "doctor/explanations.hpp"
#include "supervisor/processes/state_table.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::supervisor;
using namespace carousel::test;

TEST_CASE("every exit code of a run and of a stage is explained") {
    for (const int code :
         {exit_code::ok, exit_code::stage_failed, exit_code::usage, exit_code::no_device, exit_code::given_up,
          exit_code::gpu_fault, exit_code::revoked, exit_code::supervisor_gone, exit_code::stage_exception,
          exit_code::shared_memory, exit_code::output}) {
        CAPTURE(code);
        const auto found = explain(std::to_string(code));
        REQUIRE(found.size() == 1);
        CHECK(std::string(found[0].kind) == "exit code");
    }
}

TEST_CASE("every state that ps says of a stage is explained") {
    for (u8 s = 0; s <= static_cast<u8>(seat_state::done); ++s) {
        CAPTURE(s);
        const auto found = explain(name_of(static_cast<seat_state>(s)));
        CHECK(std::any_of(found.begin(), found.end(),
                          [](const explanation& e) { return std::string(e.kind) == "state of a stage"; }));
    }
}

TEST_CASE("a word is found as people write it") {
    CHECK(std::string(explain("illegalADDRESS").at(0).word) == "cudaErrorIllegalAddress");
    CHECK(std::string(explain("exit code 71").at(0).word) == "71");
    CHECK(std::string(explain("signal 9").at(0).word) == "137");
    CHECK(std::string(explain("128 + 11").at(0).word) == "139");
    CHECK(std::string(explain("given up").at(0).word) == "given up");
    CHECK(std::string(explain("quarantined").at(0).kind) == "slot word");
}

TEST_CASE("a word that is not there is refused with what may be meant") {
    CHECK_THROWS_WITH(explain("cudaErorIllegalAddress"),
                      contains("did you mean \"cudaErrorIllegalAddress\""));
    CHECK_THROWS_WITH(explain("99"), contains("`carousel explain` lists them"));
}

TEST_CASE("each explanation says what it means, what leads to it and what to do, in lines that fit") {
    std::set<std::string> words;
    for (const explanation& e : all_explanations()) {
        CAPTURE(e.word);
        for (const char* text : {e.means, e.here, e.act}) CHECK(std::string(text).ends_with("."));
        CHECK(words.insert(std::string(e.kind) + e.word).second);
        const std::string text = explanation_text({e}, 80);
        std::size_t from = 0;
        for (std::size_t end = text.find('\n'); end != std::string::npos;
             from = end + 1, end = text.find('\n', from))
            CHECK(end - from <= 80);
        CHECK(explanation_list(80).find(e.word) != std::string::npos);
    }
    CHECK(explanation_json({all_explanations()[0]}).find("\"kind\": \"exit code\"") != std::string::npos);
}
