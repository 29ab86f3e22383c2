// What a port's program could write to, as the program itself reports it: by its actual mappings, not by the
// usual ones.

#include "device/cpu/context.hpp"
#include "stages/sdk/port_session.hpp"
#include "tests/crash/port_programs.hpp"
#include "tests/support/exception_text.hpp"
#include "tests/support/mapped_rights.hpp"

namespace {

using namespace carousel;
using namespace carousel::test;
using nlohmann::json;

std::string guarded_ports(const std::string& name, const std::string& more = "") {
    return fmt::format(
        "[pipeline]\nname = \"{}\"\ndevice = \"cpu\"\n"
        "[[stage]]\nname = \"camera\"\nrun = \"port\"\noutput = {{ value = \"u64[512]\" }}\n"
        "[[stage]]\nname = \"analysis\"\nrun = \"port\"\ninputs = [\"camera\"]\n{}",
        name, more);
}

/// The CPU as a device that can't map anything read-only, like legacy IPC memory of a GPU.
class writing_context final : public device::context {
public:
    [[nodiscard]] device::device_kind kind() const noexcept override { return cpu_.kind(); }
    [[nodiscard]] std::string description() const override { return cpu_.description(); }
    [[nodiscard]] std::unique_ptr<device::queue> make_queue() override { return cpu_.make_queue(); }
    [[nodiscard]] std::unique_ptr<device::event> make_event(std::atomic<u64>* shared) override {
        return cpu_.make_event(shared);
    }
    [[nodiscard]] std::unique_ptr<device::imported_event> import_event(
        device::device_kind from, const device::event::handle& h, const std::atomic<u64>* shared) override {
        return cpu_.import_event(from, h, shared);
    }
    [[nodiscard]] std::unique_ptr<device::mapping> map(const device::memory_handle& handle,
                                                       device::access) override {
        return cpu_.map(handle, device::access::write);
    }
    [[nodiscard]] std::unique_ptr<device::mapping> allocate(u64 bytes) override {
        return cpu_.allocate(bytes);
    }
    [[nodiscard]] std::unique_ptr<device::mapping> allocate_host(u64 bytes) override {
        return cpu_.allocate_host(bytes);
    }

private:
    device::cpu::context cpu_{1};
};

bool is_vacant(run_fixture& run, const char* port) {
    const json row = run.stage(port);
    return row.is_object() && row.value("state", "") == "vacant";
}

/// In this process.
std::unique_ptr<port_session> enter(run_fixture& run, const std::string& name, const std::string& port,
                                    bool writes, device::context& on) {
    return std::make_unique<port_session>(run.path("runtime") + "/carousel/" + name, port, writes,
                                          [&](const device::device_id&) -> device::context& { return on; });
}

}  // namespace

TEST_CASE("ports report whether their inputs and output are guarded, based on their mappings") {
    const bool gaps = GENERATE(true, false);
    CAPTURE(gaps);
    run_fixture run;
    run.start(run.pipeline("told", guarded_ports("told", gaps ? "" : "[link.camera]\nguard = \"off\"\n")));
    REQUIRE(run.wait_until([&] { return is_vacant(run, "camera") && is_vacant(run, "analysis"); }));
    device::cpu::context usual(1);
    writing_context writing;
    device::context* const mapped_by = gaps ? static_cast<device::context*>(&usual) : &writing;
    {
        const auto camera = enter(run, "told", "camera", true, usual);
        const auto analysis = enter(run, "told", "analysis", false, *mapped_by);
        CHECK(run.stage("camera")["output_guarded"] == gaps);
        CHECK(run.stage("camera")["inputs_guarded"].is_null());
        CHECK(run.stage("analysis")["inputs_guarded"] == gaps);
        CHECK(run.stage("analysis")["output_guarded"].is_null());
        REQUIRE(camera->begin(~u64{0}) == port_session::wait_result::frame);
        CHECK(rights_at(camera->output_slot()) == "rw-s");
        REQUIRE(camera->commit(std::nullopt));
        REQUIRE(analysis->begin(~u64{0}) == port_session::wait_result::frame);
        CHECK(rights_at(analysis->input_slot(0)) == (gaps ? "r--s" : "rw-s"));
        REQUIRE(analysis->commit(std::nullopt));
    }
    run.signal(SIGINT);
    CHECK(run.wait() == 0);
    check_undamaged(run.report());
}

TEST_CASE("a port's program that writes into its input ends, and its undamaged frame is passed on") {
    run_fixture run;
    run.start(run.pipeline("wild_writes", guarded_ports("wild_writes")));
    REQUIRE(run.wait_until([&] { return is_vacant(run, "camera") && is_vacant(run, "analysis"); }));
    const external_program writes(run, "writes", "carousel-test-port-io",
                                  {"write", "wild_writes", "camera", "200"});
    external_program program(run, "wild-write", "carousel-test-port-io",
                             {"wild-write", "wild_writes", "analysis"});
    const int code = program.wait(20);
    INFO(program.output());
    CHECK(code != 0);  // SIGSEGV, except under a sanitizer, which ends it by itself
    CHECK(code != -1000);
    CHECK_FALSE(program.has_printed("has written"));
    external_program reads(run, "reads", "carousel-test-port-io", {"read", "wild_writes", "analysis", "0"});
    CHECK(run.wait_until([&] {
        return reads.has_printed("frame 0");
    }));  // the same frame; the program reads the frame's values
    run.signal(SIGINT);
    CHECK(run.wait() == 0);
    CHECK(reads.wait(10) == 0);
    check_undamaged(run.report());
}

TEST_CASE("a port's program names the ring and the producer of a torn frame") {
    run_fixture run;
    run.start(run.pipeline("torn", guarded_ports("torn")));
    REQUIRE(run.wait_until([&] { return is_vacant(run, "camera") && is_vacant(run, "analysis"); }));
    device::cpu::context here(1);
    const std::string log = exception_text([&] {
        const auto camera = enter(run, "torn", "camera", true, here);
        const auto analysis = enter(run, "torn", "analysis", false, here);
        for (int k = 0; k < 2; ++k) {
            REQUIRE(camera->begin(~u64{0}) == port_session::wait_result::frame);
            auto* word = reinterpret_cast<device::status_word*>(camera->output_slot());
            REQUIRE(camera->commit(std::nullopt));
            if (k == 1) word->ring_sequence += 5;  // as if another process filled the slot while it is read
            REQUIRE(analysis->begin(~u64{0}) == port_session::wait_result::frame);
            REQUIRE(analysis->commit(std::nullopt));
        }
    });
    CHECK_THAT(log,
               contains("frame 1 is torn: its status word in the ring camera, which camera fills, changed "
                        "under its lease"));
    CHECK_THAT(log, !contains("frame 0"));
    run.signal(SIGINT);
    CHECK(run.wait() == exit_code::stage_failed);
    CHECK(run.report()["torn"] == 2);  // before its work and after it
}
