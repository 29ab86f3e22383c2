// The errors that a stage gets for failures of a GPU, and the refusals at set-up.

#include "core/clock.hpp"
#include "core/errors.hpp"
#include "tests/device/child.hpp"
#include "tests/device/rig.hpp"
#include "tests/support/catch.hpp"

using namespace carousel;
using nlohmann::json;

TEST_CASE("an illegal address is reported as cuda_error by every later call, and no call hangs") {
    CAROUSEL_NEEDS_BACKEND();
    const auto context = test::open_backend();
    test::child victim("fault");
    const json answers = victim.receive();
    for (const char* call : {"wait", "done", "fill", "status", "record", "drain"}) {
        CAPTURE(call, answers.dump());
        REQUIRE(answers.at(call).at("error") == "cuda_error");
        REQUIRE(answers.at(call).at("status") == 700);
        REQUIRE(answers.at(call).at("code") == exit_code::gpu_fault);
    }
    REQUIRE_THAT(answers.at("wait").at("what").get<std::string>(), test::contains("cudaErrorIllegalAddress"));
    REQUIRE(victim.exit_code() == 0);  // its destructors ran, and did not block
    const auto queue = context->make_queue();
    REQUIRE_NOTHROW(queue->drain());  // nobody else's error
}

TEST_CASE("tasks are refused on a CUDA queue") {
    CAROUSEL_NEEDS_BACKEND();
    const auto context = test::open_backend();
    const auto queue = context->make_queue();
    REQUIRE(queue->native_stream() != nullptr);
    REQUIRE_THROWS_WITH(queue->submit([](device::cpu::pool&) {}), test::contains("native_stream"));
}

TEST_CASE("a GPU that isn't there is refused with those that are") {
    CAROUSEL_NEEDS_BACKEND();
    REQUIRE_THROWS_WITH(device::open({device::device_kind::cuda, "00000000000000000000000000000000", 0}),
                        test::contains("(cuda:0)"));
    REQUIRE_THROWS_AS(device::open({device::device_kind::cuda, "", 99}), device_error);
}

TEST_CASE("an event that can't be imported is null, so that no process helps") {
    CAROUSEL_NEEDS_BACKEND();
    const auto context = test::open_backend();
    device::event::handle garbage{};
    garbage.fill(std::byte{0x5A});
    REQUIRE(context->import_event(device::device_kind::cuda, garbage, nullptr) == nullptr);
    REQUIRE(context->import_event(device::device_kind::cpu, {}, nullptr) == nullptr);
    const auto queue = context->make_queue();
    REQUIRE_NOTHROW(queue->drain());
}

TEST_CASE("a request for too much GPU memory is refused with the requested and the free size") {
    CAROUSEL_NEEDS_BACKEND();
    const auto context = test::open_backend();
    REQUIRE_THROWS_WITH(context->allocate(u64{1} << 45),
                        test::contains("free of") && test::contains("smaller size"));
    test::child alloc("", test::program_next_to_test("carousel-alloc"),
                      {"--fd", "10", "--requests", R"([{"id":1,"bytes":35184372088832,"kind":"vmm"}])"});
    const std::string why = alloc.receive().at("error");
    REQUIRE_THAT(why, test::contains("33554432.0 MiB") && test::contains("free"));
    REQUIRE(alloc.exit_code() == exit_code::no_device);
}
