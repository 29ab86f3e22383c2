// What `carousel explain` contains: every exit code and every state of the ring's words, and its answers to
// anything else.
#include <algorithm>
#include <csignal>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "core/resource_limit.hpp"
#include "device/device_failure.hpp"
#include "doctor/explanations.hpp"
#include "shm/injected_fault.hpp"
#include "supervisor/policy/state_table.hpp"
#include "telemetry/bottleneck.hpp"
#include "telemetry/snapshot.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using namespace carousel::supervisor;
using namespace carousel::test;

namespace {

std::string source(const std::string& file) {
    std::ifstream in(CAROUSEL_SOURCE_FOLDER "/shared/" + file);
    std::stringstream text;
    text << in.rdbuf();
    REQUIRE_FALSE(text.str().empty());
    return text.str();
}
/// What the first group of the pattern takes, at each place.
std::vector<std::string> all_of(const std::string& text, const std::string& pattern) {
    const std::regex expression(pattern);
    std::vector<std::string> found;
    for (std::sregex_iterator at(text.begin(), text.end(), expression), end; at != end; ++at)
        found.push_back((*at)[1]);
    return found;
}
bool explained_as(const std::string& word, const std::string& kind) {
    const auto found = explain(word);
    return std::any_of(found.begin(), found.end(), [&](const explanation& e) { return e.kind == kind; });
}

}  // namespace

TEST_CASE("every exit code that the code names is explained") {
    const auto codes = all_of(source("core/errors.hpp"), "inline constexpr int \\w+ = (\\d+);");
    REQUIRE(codes.size() >= 11);
    for (const std::string& code : codes) {
        CAPTURE(code);
        CHECK(explained_as(code, "exit code"));
    }
}

TEST_CASE("every state of a job, a slot and a lease is explained") {
    const std::string words = source("ring/words.hpp");
    for (const auto& [type, kind] :
         {std::pair{"job_state", "job word"}, {"slot_state", "slot word"}, {"lease_state", "lease word"}}) {
        const auto list = all_of(words, std::string("enum class ") + type + " : u8 \\{([^}]*)\\}");
        REQUIRE(list.size() == 1);
        const auto states = all_of(list[0], "([a-z]\\w*)");
        REQUIRE(states.size() >= 4);
        for (const std::string& state : states) {
            CAPTURE(type, state);
            CHECK(explained_as(state, kind));
        }
    }
}

TEST_CASE("every reported cause of death is explained") {
    for (const int number :
         {SIGHUP, SIGINT, SIGQUIT, SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGKILL, SIGSEGV, SIGPIPE, SIGTERM}) {
        death d;
        d.known = true, d.signal = number;
        CAPTURE(describe(d));
        CHECK(explained_as(describe(d), "exit code"));
    }
    death late;
    late.deadline = true;
    for (const bool ready : {false, true})
        for (const bool injected : {false, true}) {
            late.was_ready = ready, late.injected = injected;
            CAPTURE(describe(late));
            CHECK(explained_as(describe(late), "cause of death"));
        }
    CHECK(explained_as(describe(death{}), "cause of death"));
    CHECK(explained_as(with_domain_text, "cause of death"));
    CHECK(explained_as(moved_text, "cause of death"));
    for (const char* asked : {"restarted", "down"}) CHECK(explained_as(asked, "cause of death"));
    CHECK(explained_as(death_by_signal_text, "cause of death"));
    death own;
    own.known = true;
    for (const int code : {exit_code::gpu_fault, exit_code::gpu_lost, exit_code::no_resources}) {
        own.exit_code = code;
        CHECK(explained_as(describe(own), "exit code"));
    }
    own.signal = SIGKILL, own.out_of_memory = true;
    CHECK(explained_as(describe(own), "exit code"));
    for (const shm::injected_fault_row& row : shm::injected_faults)
        CHECK(explained_as(row.name, "injected fault"));
}

TEST_CASE("every state of a process and of a slot, and all that may limit a run, is explained") {
    for (u8 s = 0; s <= static_cast<u8>(ring::entry_state::fenced); ++s)
        CHECK_NOTHROW(explain(telemetry::name_of(static_cast<ring::entry_state>(s))));
    for (u8 s = 0; s <= static_cast<u8>(telemetry::slot_phase::quarantined); ++s)
        CHECK_NOTHROW(explain(telemetry::name_of(static_cast<telemetry::slot_phase>(s))));
    using limit = telemetry::bottleneck::kind;
    for (const limit k : {limit::unknown, limit::none, limit::stage, limit::pace, limit::paused, limit::down})
        CHECK_NOTHROW(explain(telemetry::name_of(k)));
}

TEST_CASE("every CUDA error is explained by its name, its number, and as the driver names it") {
    std::set<u32> numbers;
    for (const cuda_error_name& e : all_cuda_errors()) {
        CAPTURE(e.word);
        CHECK(explained_as(e.word, "CUDA error"));
        CHECK(explained_as(std::to_string(e.number), "CUDA error"));
        CHECK(explained_as("error " + std::to_string(e.number), "CUDA error"));
        CHECK(numbers.insert(e.number).second);
        CHECK(std::string(e.means).ends_with("."));
    }
    CHECK(numbers.size() >= 130);
    for (const explanation& e : all_explanations())
        if (std::string(e.kind) == "CUDA error")
            CHECK(std::any_of(all_cuda_errors().begin(), all_cuda_errors().end(),
                              [&](const cuda_error_name& n) { return std::string(n.word) == e.word; }));
    CHECK(std::string(explain("CUDA_ERROR_ILLEGAL_ADDRESS").at(0).word) == "cudaErrorIllegalAddress");
    CHECK(std::string(explain("CUDA_ERROR_INVALID_HANDLE").at(0).word) == "cudaErrorInvalidResourceHandle");
    CHECK(std::string(explain("400").at(0).word) == "cudaErrorInvalidResourceHandle");
    CHECK(explain("exit code 3").size() == 1);
    CHECK(explain("3").size() == 2);  // an exit code, and a CUDA error
}

TEST_CASE("the client states and held objects that ps prints for a space are explained") {
    const std::string view = source("ipc/space_view.cpp");
    const auto names = all_of(view, "DESCRIBE_ENUM\\(entry_state,([^)]*)\\)");
    REQUIRE(names.size() == 1);
    for (const std::string& state : all_of(names[0], "(\\w+)"))
        if (state != "free") CHECK(explained_as(state, "state of a space's client"));
    for (const char* word : {"permits", "in line", "cells claimed", "cells popping", "cells leased"}) {
        CHECK(view.find("\"" + std::string(word) + "\"") != std::string::npos);
        CHECK(explained_as(word, "word of a space"));
    }
    for (const char* word : {"lost", "tombs", "travelling", "dead_letters"})
        CHECK(explained_as(word, "word of a space"));
}

TEST_CASE("every state of a stage in ps is explained") {
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
    CHECK(explained_as("lost run", "word of a log or report"));
    CHECK(explained_as("ended early", "word of a log or report"));
    CHECK(explained_as("fps", "key of a pipeline file"));
}

TEST_CASE("an unknown word is refused, and similar words are suggested") {
    CHECK_THROWS_WITH(explain("cudaErorIllegalAddress"),
                      contains("did you mean \"cudaErrorIllegalAddress\""));
    CHECK_THROWS_WITH(explain("99"), contains("`carousel explain` lists all entries"));
}

TEST_CASE("each explanation has a meaning, a context and an action, in lines that fit") {
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
