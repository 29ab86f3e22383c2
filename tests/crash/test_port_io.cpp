// Foreign programs that take part in a run, as its source and its sink: they die, hang, are stopped, come
// from other namespaces; and the supervisor dies.
#include <unistd.h>

#include <memory>
#include <random>

#include "core/errors.hpp"
#include "tests/crash/port_programs.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

std::string port_pipeline(const std::string& name, const std::string& keys) {
    return fmt::format(
        "[pipeline]\nname = \"{}\"\ndevice = \"cpu\"\n{}\n"
        "[[stage]]\nname = \"camera\"\nrun = \"port\"\noutput = {{ value = \"u64[512]\" }}\n"
        "type = \"test.number\"\n"
        "[[stage]]\nname = \"analysis\"\nrun = \"port\"\ninputs = [\"camera\"]\n",
        name, keys);
}

class port_run : public run_fixture {
public:
    explicit port_run(const std::string& name, const std::string& keys = "", const std::string& more = "")
        : name_(name), file_(pipeline(name, port_pipeline(name, keys) + more)) {
        start(file_);
        REQUIRE(wait_until([&] { return is("camera", "vacant") && is("analysis", "vacant"); }));
    }
    [[nodiscard]] foreign_program writes(const std::string& out, std::vector<std::string> more = {"200"},
                                         const std::vector<std::string>& environment = {},
                                         const std::vector<std::string>& prefix = {}) const {
        more.insert(more.begin(), {"write", name_, "camera"});
        return {*this, out, "carousel-test-port-io", more, environment, prefix};
    }
    [[nodiscard]] foreign_program reads(const std::string& out, std::vector<std::string> more = {"0"},
                                        const std::vector<std::string>& environment = {},
                                        const std::vector<std::string>& prefix = {}) const {
        more.insert(more.begin(), {"read", name_, "analysis"});
        return {*this, out, "carousel-test-port-io", more, environment, prefix};
    }
    bool is(const std::string& port, const std::string& state) {
        const json row = stage(port);
        return row.is_object() && row.value("state", "") == state;
    }
    bool goes_on(const foreign_program& of) {
        const u64 then = of.frame();
        return wait_until([&] { return of.frame() > then; });
    }
    void end_and_check() {
        signal(SIGINT);
        const int code = wait();
        INFO(log());
        CHECK(code == 0);
        check_undamaged(report());
        CHECK(left_behind() == "");
    }
    [[nodiscard]] const std::string& file() const noexcept { return file_; }

private:
    std::string name_, file_;
};

u64 kills_wanted(u64 usual) {
    const char* more = std::getenv("CAROUSEL_TEST_KILLS");
    return more != nullptr ? static_cast<u64>(std::atoi(more)) : usual;
}

}  // namespace

TEST_CASE("two programs that were started apart carry a run's frames, and both see its end") {
    port_run run("apart", "frames = 3000\n");
    foreign_program reads = run.reads("reads", {"0"}, {}, {"setsid"});
    foreign_program writes = run.writes("writes", {"0"}, {}, {"nohup"});
    CHECK(run.wait() == 0);
    INFO(run.log());
    check_undamaged(run.report());
    CHECK(reads.wait(10) == 0);
    CHECK(writes.wait(10) == 0);
    CHECK_THAT(reads.said(), contains("ended, 3000 frames"));
    CHECK_THAT(writes.said(), contains("ended, 3000 frames"));
    CHECK(run.left_behind() == "");
}

TEST_CASE("readers and writers that are killed under load lose, repeat and tear no frame") {
    port_run run("killed", "supervisor_grace_s = 20\n");
    std::mt19937_64 random(test_seed());
    auto reads = std::make_unique<foreign_program>(run.reads("reads"));
    auto writes = std::make_unique<foreign_program>(run.writes("writes", {"20"}));
    const u64 kills = kills_wanted(30);
    for (u64 k = 0; k < kills; ++k) {
        sleep_s(static_cast<f64>(random() % 30) / 1000);
        auto& victim = random() % 2 == 0 ? reads : writes;
        // Each third one where it has certainly come to work.
        if (k % 3 == 0) run.wait_until([&] { return victim->has_said("frame"); });
        victim->signal(SIGKILL);
        const int code = victim->wait(10);
        if (code != -SIGKILL) FAIL("a program ended with " << code << ": " << victim->said());
        const std::string name = fmt::format("{}{}", victim == reads ? "reads" : "writes", k);
        victim =
            std::make_unique<foreign_program>(victim == reads ? run.reads(name) : run.writes(name, {"20"}));
    }
    CHECK(run.wait_until([&] { return reads->frame() > 0 && writes->frame() > 0; }));
    run.end_and_check();
    CHECK(reads->wait(10) == 0);
    CHECK(writes->wait(10) == 0);
}
