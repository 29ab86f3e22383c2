#pragma once
// A run whose source "camera" and whose sink "analysis" are ports, and the programs at them.
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/crash/port_programs.hpp"

namespace carousel::test {

inline std::string port_pipeline(const std::string& name, const std::string& keys) {
    return fmt::format(
        "[pipeline]\nname = \"{}\"\ndevice = \"cpu\"\n{}\n"
        "[[stage]]\nname = \"camera\"\nrun = \"port\"\noutput = {{ value = \"u64[512]\" }}\n"
        "type = \"test.number\"\nends = true\n"
        "[[stage]]\nname = \"analysis\"\nrun = \"port\"\ninputs = [\"camera\"]\n",
        name, keys);
}

class port_run : public run_fixture {
public:
    explicit port_run(const std::string& name, const std::string& keys = "", const std::string& more = "",
                      const std::vector<std::string>& environment = {})
        : name_(name), file_(pipeline(name, port_pipeline(name, keys) + more)) {
        start(file_, {}, environment);
        REQUIRE(wait_until([&] { return is("camera", "vacant") && is("analysis", "vacant"); }));
    }
    [[nodiscard]] external_program writes(const std::string& out, std::vector<std::string> more = {"200"},
                                          const std::vector<std::string>& environment = {},
                                          const std::vector<std::string>& prefix = {}) const {
        more.insert(more.begin(), {"write", name_, "camera"});
        return {*this, out, "carousel-test-port-io", more, environment, prefix};
    }
    [[nodiscard]] external_program reads(const std::string& out, std::vector<std::string> more = {"0"},
                                         const std::vector<std::string>& environment = {},
                                         const std::vector<std::string>& prefix = {}) const {
        more.insert(more.begin(), {"read", name_, "analysis"});
        return {*this, out, "carousel-test-port-io", more, environment, prefix};
    }
    [[nodiscard]] external_program ends(const std::string& out, u64 before,
                                        const std::vector<std::string>& environment = {}) const {
        return {*this,
                out,
                "carousel-test-port-io",
                {"end", name_, "camera", "0", std::to_string(before), "0"},
                environment};
    }
    bool is(const std::string& port, const std::string& state) {
        const nlohmann::json row = stage(port);
        return row.is_object() && row.value("state", "") == state;
    }
    bool makes_progress(const external_program& of) {
        const u64 then = of.frame();
        return wait_until([&] { return of.frame() > then; });
    }
    void end_and_check() {
        signal(SIGINT);
        const int code = wait();
        INFO(log());
        CHECK(code == 0);
        check_undamaged(report());
        CHECK(wait_until([&] { return leftovers() == ""; }));  // external programs leave in their own time
    }
    [[nodiscard]] const std::string& file() const noexcept { return file_; }

private:
    std::string name_, file_;
};

/// A stage that reads every frame in addition to the port.
inline std::string witness() {
    return "[[stage]]\nname = \"witness\"\nrun = \"" + programs() +
           "/carousel-test-number\"\ninputs = [\"camera\"]\nsink = true\n";
}

}  // namespace carousel::test
