// The pipe to carousel-peek, with programs that end in its place.

#include <chrono>
#include <thread>

#include "core/clock.hpp"
#include "tests/pipelines/spec/world.hpp"
#include "top/picture_pipe.hpp"

using namespace carousel;
using namespace carousel::test;
using namespace carousel::supervisor;

namespace {

// The error of a pipe to `script`, which is requested to send a picture `before_ns` after its start.
std::string error_of(const std::string& script, u64 before_ns) {
    const world w;
    w.program("peek", script);
    run::record run;
    run.name = "nothing";
    run.run_id = "0";
    picture_pipe p(w.path("peek"), run, "");
    std::this_thread::sleep_for(std::chrono::nanoseconds(before_ns));
    const u64 until = now_ns() + 10'000'000'000;
    while (p.error_text().empty() && now_ns() < until) p.ask(8, 8, 100'000'000);
    return p.error_text();
}

}  // namespace

TEST_CASE("a peek's last message is reported whenever it was queried") {
    const std::string script = "printf 'error: nothing can be rendered' >&3";
    CHECK(error_of(script, 500'000'000) == "nothing can be rendered");        // ended before the request
    CHECK(error_of("sleep 0.5; " + script, 0) == "nothing can be rendered");  // the question is left unread
    CHECK(error_of("true", 500'000'000) == "carousel-peek has ended");
    CHECK(error_of("sleep 0.5", 0) == "carousel-peek has ended");
}
